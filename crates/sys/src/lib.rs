//! The operating system as Brigade needs it, behind safe functions.
//!
//! This is the only crate of the workspace with `unsafe` code; every block says why it is sound.
//! It knows nothing about tasks, pools or messages.
//!
//! | Module | What it gives |
//! |---|---|
//! | [`process`] | [`Process`](process::Process): start, signal and reap a process group without ever touching a recycled pid |
//! | [`executable`] | [`FunctionOffset`](executable::FunctionOffset): a function as a number that another process of the same program can call |
//! | [`control`] | [`ControlSocket`](control::ControlSocket): packets and descriptors between a host and its worker |
//! | [`segment`] | [`Segment`](segment::Segment): anonymous shared memory of atomic words |
//! | [`sealed`] | [`SealedBytes`](sealed::SealedBytes): shared memory that is written once and then only read |
//! | [`arena`] | [`ArgumentArena`](arena::ArgumentArena), [`ResultArena`](arena::ResultArena): shared memory for large payloads, in blocks |
//! | [`launch`] | [`Launcher`](launch::Launcher): starts programs that are not ours, pinned and bound to our death |
//! | [`guardian`] | [`Guardian`](guardian::Guardian): kills the groups of a process that was killed |
//! | [`orphans`] | what descendants leave behind, adopted and ended |
//! | [`wait`] | [`wait_readable`](wait::wait_readable) with a deadline, and a [`Waker`](wait::Waker) that ends such a wait |
//! | [`wake_set`] | [`WakeSet`](wake_set::WakeSet): such wake-ups from other processes |
//! | [`poller`], [`deadline_timer`] | [`Poller`](poller::Poller): waiting for many descriptors; [`DeadlineTimer`](deadline_timer::DeadlineTimer): a deadline as one |
//! | [`request_socket`] | packets from processes that the kernel names: [`Listener`](request_socket::Listener), [`RequestSocket`](request_socket::RequestSocket) |
//! | [`environment`], [`descriptors`], [`signals`], [`parent_death`], [`lifeline`], [`before_main!`] | what a worker does in its first microseconds |
//! | [`fork`] | [`Origin`](fork::Origin): whether this process is a copy that `fork` has made; [`PerProcess`](fork::PerProcess): a value of its own for each |
//! | [`file_limit`] | whether shared memory of a size can be made |
//! | [`memory`] | how much of it this process uses |
//! | [`scheduling`] | how soon a thread runs that has become ready |
//! | [`affinity`] | on which cpus a thread, and what it starts, may run |
//! | [`byte_lock`], [`file_watch`], [`private_folder`] | locks between processes that die with their holder, and news of them |
//! | [`clock`] | the monotonic clock as a number that is the same in every process |
//!
//! # Example
//!
//! ```
//! use brigade_sys::process::{Exit, Process, Signal};
//! use std::process::Command;
//!
//! let sleeper = Process::spawn(Command::new("sleep").arg("60"))?;
//! assert_eq!(sleeper.try_reap()?, None);
//! sleeper.signal_group(Signal::Kill)?;
//! let exit = sleeper.reap()?;
//! assert_eq!(exit, Exit::Signal(9));
//! assert_eq!(exit.to_string(), "SIGKILL (signal 9)");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Invariants
//!
//! - A signal never reaches a process that is not ours: single processes are signalled by pidfd, and a group only
//!   while its leader has not been reaped.
//! - Every descriptor that this crate creates is close-on-exec.
//! - Every system call that a signal can interrupt is retried; every wait takes a deadline or ends with a death.
//! - Nothing is printed, and no thread is started.

#[cfg(not(target_os = "linux"))]
compile_error!("Brigade runs on Linux only for now: it builds on pidfd, memfd and close_range");

pub mod affinity;
pub mod arena;
mod before_main;
pub mod byte_lock;
pub mod clock;
pub mod control;
pub mod deadline_timer;
pub mod descriptors;
pub mod environment;
mod error;
pub mod executable;
pub mod file_limit;
pub mod file_watch;
pub mod fork;
pub mod futex;
pub mod guardian;
pub mod handover;
pub mod launch;
pub mod lifeline;
pub mod memory;
#[cfg(feature = "misdeeds")]
pub mod misdeeds;
pub mod orphans;
pub mod parent_death;
pub mod poller;
pub mod private_folder;
pub mod process;
pub mod request_socket;
pub mod scheduling;
pub mod sealed;
pub mod segment;
pub mod signals;
pub mod wait;
pub mod wake_set;
