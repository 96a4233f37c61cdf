//! Recipes: whole programs, each for one problem.
//!
//! They are [examples][examples] in the repository, and need no further data:
//!
//! ```sh
//! git clone https://github.com/brigade-rs/brigade
//! cd brigade
//! cargo run -p brigade --example segfaults
//! ```
//!
//! An example with the name `-p NAME` is a package: `cargo run -p NAME`. Most are a single file.
//! Copy it over the `src/main.rs` of your program to begin there.
//!
//! # Code that goes wrong
//!
//! | you say | example | it shows |
//! |---|---|---|
//! | "I use a C library that sometimes segfaults." | `segfaults` | a crash costs one input |
//! | "A regex or a script of a user may never end." | `endless` | deadlines |
//! | "I run untrusted code." | `untrusted`, with `--features sandbox` | a sandbox, limits |
//! | "I want to step through my tasks in a debugger." | `in_process` | workers as threads |
//! | "I need to know where it crashed." | `-p brigade-example-crash` | crash reports, stacks |
//!
//! # Much data, many inputs
//!
//! | you say | example | it shows |
//! |---|---|---|
//! | "I load batches for training." | `training` | a stream, order, seeds, shared memory |
//! | "I load images for training." | `-p brigade-example-image-loader` | the same with files |
//! | "All workers need the same large table." | `preload` | a table in memory that workers share |
//! | "I have several GPUs." | `gpu` | slots, initializers |
//! | "I want a progress bar." | `progress` | `map_unordered` with `indicatif` |
//! | "I compute the checksums of a whole disk." | `checksum` | a complete program with options |
//!
//! # Commands
//!
//! | you say | example | it shows |
//! |---|---|---|
//! | "I compile 10,000 files." | `compile` | the runner, deadlines of commands |
//! | "My list takes days, and I must be able to resume it." | `job_list` | a log of jobs |
//!
//! Without a program of your own, the command `brigade run` does both.
//!
//! # Programs and machines
//!
//! | you say | example | it shows |
//! |---|---|---|
//! | "My web service makes thumbnails." | `-p brigade-example-service` | axum, a full queue |
//! | "A plugin is an executable of its own." | `server-host` | names, versions, errors of both |
//! | "A nightly batch runs on ten machines." | `-p brigade-example-cluster` | nodes, batches |
//!
//! Build the plugin first: `cargo build -p brigade --examples`. The cluster needs a NATS server;
//! its first lines say how to start one.
//!
//! # A pattern: the largest input first
//!
//! The last tasks decide when a batch ends. So begin with those that take longest:
//!
//! ```
//! # brigade::init_for_tests!();
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = brigade::Pool::builder().workers(2).build()?;
//! let mut texts = vec!["a".to_owned(), "a long text".to_owned(), "short".to_owned()];
//! texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
//! let lengths: Result<Vec<usize>, _> = pool.map(|text: String| text.len(), texts).collect();
//! assert_eq!(lengths?, [11, 5, 1]);
//! # Ok(())
//! # }
//! ```
//!
//! # A pattern: the first answer
//!
//! Several ways may lead to a result. Start all of them, and kill the others when the first one has
//! ended:
//!
//! ```
//! # brigade::init_for_tests!();
//! use brigade::{Until, wait};
//!
//! fn search(way: u32) -> u32 {
//!     while way != 3 {
//!         std::hint::spin_loop();
//!     }
//!     42
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = brigade::Pool::builder().workers(3).build()?;
//! let handles = [1, 2, 3].map(|way| pool.submit(search, way));
//! let handles = handles.into_iter().collect::<Result<Vec<_>, _>>()?;
//! wait(&handles, Until::First, None);
//! for handle in &handles {
//!     handle.kill(); // does nothing to the one that has ended
//! }
//! assert_eq!(handles.into_iter().find_map(|handle| handle.wait().ok()), Some(42));
//! # Ok(())
//! # }
//! ```
//!
//! Next: [coming from another library](super::coming_from).
//!
//! [examples]: https://github.com/brigade-rs/brigade/tree/main/crates/brigade/examples
