//! Large data: how bytes reach a worker, and how to avoid copies.
//!
//! # What a task costs
//!
//! An argument is *encoded*: turned into bytes. The bytes travel through memory that host and
//! worker share. The worker decodes them, and the result comes back in the same way. So an ordinary
//! value is copied once on each side. For values up to some megabytes you need not think about it.
//!
//! A `String` or a vector of numbers (`Vec<u8>`, `Vec<f32>`, `Vec<u64>`, …) of 4 MiB or more is
//! copied only once, directly between the memory of the two processes. Then most of the time goes
//! to fresh memory: the system clears each page before it gives it to a process. An allocator that
//! keeps large freed blocks avoids that in host and workers, which are the same program:
//!
//! - [mimalloc](https://docs.rs/mimalloc) as the global allocator keeps them by itself.
//! - [jemalloc](https://docs.rs/tikv-jemallocator) does so with
//!   `_RJEM_MALLOC_CONF=oversize_threshold:0,dirty_decay_ms:-1` in the environment of the host.
//! - glibc needs no change of the program: its options `glibc.malloc.mmap_max=0`,
//!   `glibc.malloc.trim_threshold=2147483648` and `glibc.malloc.arena_max=1`, with colons between
//!   them, are the value of `GLIBC_TUNABLES`. Threads that allocate much then wait for each other.
//!
//! Inside another value, a vector of numbers is encoded number by number, which takes much longer.
//! Name [`packed`](crate::packed) there, and its bytes are copied as they are:
//!
//! ```
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Picture {
//!     name: String,
//!     #[serde(with = "brigade::packed")]
//!     pixels: Vec<f32>,
//! }
//! # brigade::init_for_tests!();
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = brigade::Pool::builder().workers(1).build()?;
//! # let picture = Picture { name: String::new(), pixels: vec![0.5; 5] };
//! # assert_eq!(pool.submit(|it: Picture| it.pixels.len(), picture)?.wait()?, 5);
//! # Ok(())
//! # }
//! ```
//!
//! With the type [`Packed`](crate::packed::Packed) in place of the attribute, a large vector is
//! copied only once, as if it were the whole argument or result:
//!
//! ```
//! use brigade::packed::Packed;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Picture {
//!     name: String,
//!     pixels: Packed<Vec<f32>>,
//! }
//!
//! /// Makes all pixels brighter. A `Packed` vector is used like any vector.
//! fn brighten(mut picture: Picture) -> Picture {
//!     picture.pixels.iter_mut().for_each(|pixel| *pixel *= 1.5);
//!     picture
//! }
//! # brigade::init_for_tests!();
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = brigade::Pool::builder().workers(1).build()?;
//!
//! let picture = Picture { name: "sea".to_owned(), pixels: vec![0.5; 100].into() };
//! let brighter = pool.submit(brighten, picture)?.wait()?;
//! assert_eq!(brighter.pixels.into_inner(), [0.75; 100]);
//! # Ok(())
//! # }
//! ```
//!
//! # A buffer without copies
//!
//! A [`SharedBuf`](crate::SharedBuf) is a block of bytes in shared memory. A message contains only
//! its place. The other side reads the bytes where they lie.
//!
//! ```
//! # brigade::init_for_tests!();
//! use brigade::{Pool, SharedBuf, worker};
//!
//! /// Makes a picture. The worker writes it once, and the host reads it there.
//! fn render(length: usize) -> SharedBuf {
//!     let mut pixels = worker::alloc(length).expect("memory");
//!     pixels.fill(128);
//!     pixels.freeze()
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = Pool::builder().workers(1).build()?;
//! let picture = pool.submit(render, 1 << 20)?.wait()?;
//! assert_eq!(picture.len(), 1 << 20);
//! assert_eq!(picture[0], 128);
//! # Ok(())
//! # }
//! ```
//!
//! The way to a worker is the same: [`Pool::alloc`](crate::Pool::alloc), fill, `freeze`, submit.
//!
//! ```
//! # brigade::init_for_tests!();
//! # use brigade::{Pool, SharedBuf};
//! fn sum(bytes: SharedBuf) -> u64 {
//!     bytes.iter().map(|&byte| u64::from(byte)).sum()
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = Pool::builder().workers(2).build()?;
//! let mut bytes = pool.alloc(1 << 20)?;
//! bytes.fill(1);
//! let bytes = bytes.freeze();
//! let halves = [bytes.slice(..1 << 19), bytes.slice(1 << 19..)]; // two views, no copy
//! for half in pool.map(sum, halves) {
//!     assert_eq!(half?, 1 << 19);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A frozen buffer never changes, and a clone is cheap. Its memory is free again when the last
//! clone is dropped.
//!
//! # Numbers, arrays, `Bytes`
//!
//! | you need | method | cargo feature |
//! |---|---|---|
//! | `&[f32]` | `SharedBuf::typed` | `bytemuck` |
//! | an array in several dimensions | `SharedBuf::array` | `ndarray` |
//! | `bytes::Bytes`, and from that Arrow | `Bytes::from(buffer)` | `bytes` |
//!
//! # How much memory?
//!
//! [`buffer_budget`](crate::PoolBuilder::buffer_budget) limits the memory of the buffers of a pool.
//! `alloc` waits while it is used up. `try_alloc` returns an error then.
//!
//! # Files and paths
//!
//! A task can open a file itself. Send the path, and not the contents, if the worker can read the
//! file.
//!
//! # Too large for one message
//!
//! An argument or a result may have 1 GiB.
//! [`message_limit`](crate::PoolBuilder::message_limit) changes that. What exceeds it is an error.
//! With [`stream_flat`](crate::Pool::stream_flat), a task returns a large result in parts.
//!
//! # Whom do you trust?
//!
//! With the default protection, the host reads a buffer in place. It relies on the worker not to
//! write to it afterwards. Use [`buffer_protection`](crate::PoolBuilder::buffer_protection) if the
//! worker runs code of strangers. A pool with a [sandbox](super::sandboxes) copies buffers by
//! itself.
//!
//! Next: [initializers and shared tables](super::shared_state).
