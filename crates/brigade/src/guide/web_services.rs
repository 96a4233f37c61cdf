//! Async programs and web services.
//!
//! # A handle is a future
//!
//! A [`Handle`](crate::Handle) can be awaited, in every runtime. The pool needs no runtime of its
//! own.
//!
//! ```
//! # brigade::init_for_tests!();
//! use brigade::Pool;
//!
//! fn square(x: u64) -> u64 {
//!     x * x
//! }
//!
//! async fn serve(pool: &Pool, x: u64) -> Result<u64, Box<dyn std::error::Error>> {
//!     // Waits without blocking the thread if the queue is full.
//!     let handle = pool.submit_async(square, x).await?;
//!     Ok(handle.await?)
//! }
//! # fn main() {
//! #     let pool = Pool::builder().workers(1).build().unwrap();
//! #     let runtime = tokio::runtime::Runtime::new().unwrap();
//! #     assert_eq!(runtime.block_on(serve(&pool, 7)).unwrap(), 49);
//! # }
//! ```
//!
//! # Where does `init` go with tokio?
//!
//! A runtime starts threads, and `init` wants to be first. So write `main` without
//! `#[tokio::main]`:
//!
//! ```
//! # brigade::init_for_tests!();
//! # async fn serve(_: &brigade::Pool) -> Result<(), Box<dyn std::error::Error>> { Ok(()) }
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     brigade::init();
//!     let pool = brigade::Pool::builder().build()?;
//!     let runtime = tokio::runtime::Runtime::new()?;
//!     runtime.block_on(serve(&pool))?;
//!     pool.shutdown()?; // it blocks, so it comes after the runtime
//!     Ok(())
//! }
//! ```
//!
//! `#[tokio::main]` with `init` in its first line works too. But then each worker starts a runtime
//! that it does not need, and `Link::Ipc` does not work.
//!
//! # One pool for the program
//!
//! Build the pool once and share it. Its methods take `&self`, and an `Arc<Pool>` fits into the
//! state of every web framework.
//!
//! # A request that nobody waits for
//!
//! A client may go away while its request runs. The framework drops the future of the request. By
//! default the task runs on, for nobody. [`abort_on_drop`](crate::Handle::abort_on_drop) ends it.
//!
//! # Too many requests
//!
//! A queue that grows makes every answer late. Limit it, and refuse what does not fit:
//!
//! ```
//! # brigade::init_for_tests!();
//! use std::time::Duration;
//! use brigade::Pool;
//!
//! fn thumbnail(picture: Vec<u8>) -> Vec<u8> {
//!     picture
//! }
//!
//! /// Returns the status of an HTTP answer.
//! fn answer(pool: &Pool, picture: Vec<u8>) -> u16 {
//!     match pool.try_submit(thumbnail, picture) {
//!         Err(error) if error.is_full() => 503, // come back later
//!         Err(_) => 500,
//!         Ok(handle) => match handle.wait() {
//!             Ok(_) => 200,
//!             Err(error) if error.is_deadline() => 504,
//!             Err(_) => 500, // the decoder crashed, and the service goes on
//!         },
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = Pool::builder()
//!     .workers(2)
//!     .queue_limit(64)
//!     .queue_deadline(Duration::from_secs(1)) // the longest wait for a worker
//!     .deadline(Duration::from_secs(5)) // the longest run
//!     .build()?;
//! assert_eq!(answer(&pool, vec![0; 100]), 200);
//! # Ok(())
//! # }
//! ```
//!
//! # The end of a service
//!
//! Stop accepting requests first. Then let those finish that have begun. Then end the runtime, and
//! call [`shutdown`](crate::Pool::shutdown). The example `crates/brigade/examples/service` does all
//! of this with axum. It also serves the state of its pool to Prometheus.
//!
//! Next: [testing](super::testing).
