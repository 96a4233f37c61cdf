//! Sandboxes and limits: code that nobody trusts.
//!
//! # Crashes are not malice
//!
//! A worker has the rights of your program. So a plain pool protects you from crashes, and not from
//! code that attacks you. For that, take rights away from the workers.
//!
//! # Limits
//!
//! A *limit* is the most that a task or a worker may take of something.
//!
//! ```
//! # brigade::init_for_tests!();
//! use std::time::Duration;
//! use brigade::{Limits, Pool};
//!
//! fn hungry(mebibytes: usize) -> usize {
//!     vec![1_u8; mebibytes << 20].iter().filter(|&&byte| byte == 1).count()
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let limits = Limits::new()
//!     .memory(256 << 20)
//!     .cpu_time(Duration::from_secs(5))
//!     .open_files(64)
//!     .file_size(100 << 20);
//! let pool = Pool::builder().workers(1).limits(limits).build()?;
//! let error = pool.submit(hungry, 1_000)?.wait().unwrap_err();
//! assert!(error.is_limit(), "{error}");
//! assert_eq!(pool.submit(hungry, 1)?.wait()?, 1 << 20);
//! # Ok(())
//! # }
//! ```
//!
//! The pool goes on with another worker. `pool.task(f).memory(..)` and `.cpu_time(..)` limit a
//! single task.
//!
//! Do not set `RLIMIT_AS` for workers. A worker maps much address space for shared memory, which
//! takes no memory until it is used.
//!
//! # A sandbox
//!
//! A *sandbox* takes rights away for good, and the kernel enforces that. It needs the cargo feature
//! `sandbox`.
//!
//! | level | the code may |
//! |---|---|
//! | `Sandbox::no_network()` | do all but use networks |
//! | `Sandbox::read_only()` | read files, but change none |
//! | `Sandbox::strict()` | compute, and open only what you allow |
//!
//! ```
//! # #[cfg(feature = "sandbox")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # brigade::init();
//! use brigade::{Pool, Sandbox};
//!
//! fn first_line(path: String) -> Result<String, String> {
//!     let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
//!     Ok(text.lines().next().unwrap_or_default().to_owned())
//! }
//!
//! let sandbox = Sandbox::strict().read("/etc/os-release");
//! # let sandbox = sandbox.best_effort();
//! let pool = Pool::builder().workers(1).sandbox(sandbox).build()?;
//! println!("{:?}", pool.submit(first_line, "/etc/os-release".to_owned())?.wait()?); // Ok(..)
//! println!("{:?}", pool.submit(first_line, "/etc/passwd".to_owned())?.wait()?); // Err(..)
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "sandbox"))]
//! # fn main() {}
//! # brigade::init_for_tests!();
//! ```
//!
//! A file that is not allowed is an ordinary error for the code: permission denied. A forbidden
//! system call ends the task, and [`is_denied`](crate::TaskError::is_denied) returns `true`.
//!
//! # Load first, then lock
//!
//! A worker enters the sandbox after its initializer. So the initializer may load fonts, models and
//! certificates, and tasks need no right to do so.
//!
//! # What the machine can enforce
//!
//! `build` returns an error that names what this kernel cannot enforce. `best_effort` accepts that.
//! [`sandbox_report`](crate::Pool::sandbox_report) says what holds for a pool, and
//! `brigade sandbox` prints it for the machine.
//! [Kernels](https://github.com/brigade-rs/brigade/blob/main/docs/kernel.md) has the versions.
//!
//! # Another program
//!
//! The sandbox also holds for a worker that is another program, and for commands:
//! `brigade run --sandbox strict --read in --write out -- ffmpeg …`
//!
//! Levels, limits and costs are in [sandboxes and
//! limits](https://github.com/brigade-rs/brigade/blob/main/docs/sandbox.md). The boundaries are in
//! the [security policy](https://github.com/brigade-rs/brigade/blob/main/SECURITY.md).
//!
//! Next: [many machines](super::many_machines).
