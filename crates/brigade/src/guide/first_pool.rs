//! Your first pool: one task, then many.
//!
//! # One task
//!
//! A *pool* keeps a number of processes ready. Such a process is a *worker*. A *task* is one call
//! of a function with one argument, and a worker runs it. Your program is the *host*: it owns the
//! pool and submits tasks to it.
//!
//! ```
//! # brigade::init_for_tests!();
//! use brigade::Pool;
//!
//! fn word_count(text: String) -> usize {
//!     text.split_whitespace().count()
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     brigade::init(); // the first line of `main`
//!     let pool = Pool::builder().workers(2).build()?;
//!     let handle = pool.submit(word_count, "never trust a C library".to_owned())?;
//!     assert_eq!(handle.wait()?, 5);
//!     Ok(())
//! }
//! ```
//!
//! [`submit`] returns a [`Handle`], which stands for the task. It does not wait for the task.
//! [`wait`](crate::Handle::wait) blocks until the task has ended, and returns its value.
//!
//! # The first line of `main`
//!
//! A worker is another process of the same program. It starts in `main`, as every process does.
//! [`init`](crate::init) notices that a pool has started this process. In a worker it runs tasks
//! and never returns. In your program it returns at once.
//!
//! Lines before `init` run in every worker too, so leave nothing there that prints or writes. Start
//! no thread before it.
//!
//! # Rules for a function
//!
//! - It is a function item, or a closure that captures nothing.
//! - It takes one argument. Use a tuple or a struct for several.
//! - The argument and the result are owned `serde` types: take a `String`, and not a `&str`.
//! - A type of your own derives `serde::Serialize` and `serde::Deserialize`. For that, run
//!   `cargo add serde --features derive`.
//! - In a `Result`, the error is such a type too: a `String`, and not a `Box<dyn Error>`.
//!
//! A closure that captures a variable does not compile, and the `move` that the compiler proposes
//! does not help. The variable lives in the host, and a worker has its own memory. Send what the
//! task needs as its argument:
//!
//! ```
//! # brigade::init_for_tests!();
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = brigade::Pool::builder().workers(1).build()?;
//! let limit = 3;
//! let is_longer = |(word, limit): (String, usize)| word.len() > limit;
//! assert!(pool.submit(is_longer, ("four".to_owned(), limit))?.wait()?);
//! # Ok(())
//! # }
//! ```
//!
//! # Many tasks: which method?
//!
//! | you have | you want | use |
//! |---|---|---|
//! | one call | its value | [`submit`] and [`Handle::wait`] |
//! | a list of inputs | results in the order of the inputs | [`map`] |
//! | a list of inputs | results as they are ready | [`map_unordered`] |
//! | several handles, perhaps of different functions | each as it ends | [`as_completed`] |
//! | inputs that come over time | results while inputs still come | [`stream`] |
//!
//! Start with [`map`]. It is lazy: it takes inputs only while you take results. It sends short
//! tasks in groups, which are called *chunks*.
//!
//! ```
//! # brigade::init_for_tests!();
//! # fn square(x: u64) -> u64 { x * x }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = brigade::Pool::builder().workers(2).build()?;
//! let mut sum = 0;
//! for square in pool.map(square, 0..1_000) {
//!     sum += square?; // an item may be an error, and the others still come
//! }
//! assert_eq!(sum, 332_833_500);
//! # Ok(())
//! # }
//! ```
//!
//! # Which input failed?
//!
//! [`with_inputs`](crate::pool::Map::with_inputs) yields each result with its input,
//! [`indexed`](crate::pool::Map::indexed) with the position of the input:
//!
//! ```
//! # brigade::init_for_tests!();
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = brigade::Pool::builder().workers(1).build()?;
//! let paths = ["a.png", "b.png"].map(String::from);
//! for (path, result) in pool.map_unordered(|path: String| path.len(), paths).with_inputs() {
//!     match result {
//!         Ok(length) => println!("{path}: {length}"),
//!         Err(error) => println!("{path}: {error}"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! An error knows it, too: [`TaskError::index`](crate::TaskError::index). A [`stream`] numbers its
//! inputs, and each result has the number of its input.
//!
//! # Threads or processes?
//!
//! Use threads (rayon, `std::thread`) for code that you trust. They share memory, so nothing is
//! encoded or copied. Use a pool of processes for code that may crash, hang, leak, or change global
//! state.
//!
//! Next: [errors and retries](super::errors).
//!
//! [`submit`]: crate::Pool::submit
//! [`map`]: crate::Pool::map
//! [`map_unordered`]: crate::Pool::map_unordered
//! [`stream`]: crate::Pool::stream
//! [`as_completed`]: crate::as_completed
//! [`Handle`]: crate::Handle
//! [`Handle::wait`]: crate::Handle::wait
