//! Wraps the functions of the operating system that Brigade needs in safe ones.
//!
//! Internal to Brigade: any release may change its interface. Programs use the facade `brigade`.
//!
//! This is the only crate of the workspace with `unsafe` code; every block says why it is sound. It
//! knows nothing about tasks, pools or messages. The principal types are
//! [`Process`](process::Process), [`Segment`](segment::Segment), the arenas of [`arena`],
//! [`ControlSocket`](control::ControlSocket) and [`Poller`](poller::Poller).
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

//! # Modules
//!
//! Processes:
//! - [`process`]: [`Process`](process::Process) starts, signals and reaps a process group without
//!   ever touching a recycled pid
//! - [`launch`]: [`Launcher`](launch::Launcher) starts other people's programs, pinned and bound to
//!   the death of their parent
//! - [`guardian`]: [`Guardian`](guardian::Guardian) kills the process groups of a process that was
//!   killed itself
//! - [`orphans`]: adopts and ends processes whose parents have ended
//! - [`fork`]: [`Origin`](fork::Origin) detects copies that `fork` has made of a process;
//!   [`PerProcess`](fork::PerProcess) gives each copy a value of its own
//! - [`descriptor_limit`]: raises the limit on open descriptors
//! - [`environment`], [`descriptors`], [`signals`], [`parent_death`], [`lifeline`],
//!   [`before_main!`]: what a worker does in its first microseconds
//! - [`sibling`], [`inherited`]: how a server copies itself as another child of its parent
//! - [`crash`]: records why a worker crashes, and where it is
//!
//! Functions and memory:
//! - [`elf`]: [`Elf`](elf::Elf) reads the headers, sections and symbols of a program
//! - [`executable`]: [`FunctionOffset`](executable::FunctionOffset) is a function as a number that
//!   another process of the same program can call
//! - [`segment`]: [`Segment`](segment::Segment) is anonymous shared memory of atomic words
//! - [`sealed`]: [`SealedBytes`](sealed::SealedBytes) is shared memory that is written once and
//!   then only read
//! - [`arena`]: [`ArgumentArena`](arena::ArgumentArena) and [`ResultArena`](arena::ResultArena)
//!   hold large payloads in blocks of shared memory
//! - [`thin_bytes`]: [`ThinBytes`](thin_bytes::ThinBytes) is a slice on the heap whose owner takes
//!   one word
//! - [`random`]: bytes that nobody can predict
//! - [`memory`]: measures the memory that this process uses
//! - [`foreign_memory`]: reads the memory of another process
//! - [`numbers`]: [`Numbers`](numbers::Numbers) is the memory of a vector of numbers
//! - [`huge_pages`]: puts private memory into huge pages
//! - [`memory_limit`]: finds how much memory a process may use
//! - [`file_limit`]: checks whether shared memory of a given size can be created
//!
//! Communication and waiting:
//! - [`control`]: [`ControlSocket`](control::ControlSocket) carries packets and descriptors between
//!   a host and its worker
//! - [`request_socket`]: [`Listener`](request_socket::Listener) and
//!   [`RequestSocket`](request_socket::RequestSocket) carry packets whose sender the kernel
//!   identifies
//! - [`wait`]: [`wait_readable`](wait::wait_readable) waits until a deadline, and a
//!   [`Waker`](wait::Waker) ends such a wait
//! - [`wake_set`]: [`WakeSet`](wake_set::WakeSet) receives wake-ups from other processes
//! - [`nearby`]: a [`Parker`](nearby::Parker) wakes a thread on the core of its waker
//! - [`pipes`]: writes to the standard input of children
//! - [`poller`]: [`Poller`](poller::Poller) waits for many descriptors
//! - [`deadline_timer`]: [`DeadlineTimer`](deadline_timer::DeadlineTimer) is a deadline as a
//!   descriptor
//! - [`sync`]: a [`Mutex`](sync::Mutex) and a [`Condvar`](sync::Condvar) that ignore poison
//! - [`guarded`]: [`Guarded`](guarded::Guarded) is a shared value with a part behind a lock
//! - [`exit_handler`]: functions that run when the process ends
//! - [`catch_panic`]: contains panics on threads that must go on
//! - [`file_lock`]: a lock on a file that one program writes to
//! - [`byte_lock`], [`file_watch`], [`private_folder`]: locks between processes that end with their
//!   holder, and notifications about them
//!
//! Time and processors:
//! - [`clock`]: the monotonic clock as a number that is the same in every process
//! - [`affinity`]: the cpus on which a thread, and everything that it starts, may run
//! - [`scheduling`]: how soon a thread runs after it has become ready
//!
//! # Invariants
//!
//! - A signal never reaches a stranger's process: single processes are signalled by pidfd, and a
//!   group only while its leader has not been reaped.
//! - Every descriptor that this crate creates is close-on-exec.
//! - Every system call that a signal can interrupt is retried; every wait takes a deadline or ends
//!   with a death.
//! - Nothing is printed, and no thread is started.

// Links of crates that are documented without this one lead there.
#![doc(html_root_url = "https://docs.rs/brigade-sys/latest")]
#![cfg_attr(
    any(not(target_os = "linux"), brigade_elsewhere),
    expect(unused_unsafe, reason = "what stands in for the C library does nothing")
)]

#[cfg(any(not(target_os = "linux"), brigade_elsewhere))]
extern crate brigade_elsewhere as libc;
#[cfg(any(not(target_os = "linux"), brigade_elsewhere))]
extern crate brigade_elsewhere as rustix;
#[cfg(windows)]
extern crate brigade_windows as std;

#[macro_use]
mod syscall;

pub mod affinity;
pub mod arena;
mod as_fd;
mod before_main;
pub mod byte_lock;
pub mod catch_panic;
pub mod clock;
pub mod confine;
pub mod confinement;
pub mod control;
pub mod copies;
mod copy;
pub mod crash;
pub mod deadline_timer;
mod debug_fields;
pub mod descriptor_limit;
pub mod descriptors;
pub mod elf;
pub mod environment;
mod error;
mod error_text;
pub mod executable;
pub mod exit_handler;
pub mod fetch;
pub mod file_limit;
pub mod file_lock;
pub mod file_watch;
pub mod foreign_memory;
pub mod fork;
pub mod futex;
pub mod guarded;
pub mod guardian;
pub mod handover;
pub mod huge_pages;
pub mod inherited;
pub mod launch;
pub mod lifeline;
pub mod memory;
pub mod memory_limit;
mod named;
pub mod nearby;
pub mod numbers;
pub mod orphans;
pub mod parent_death;
pub mod pipes;
pub mod poller;
pub mod private_folder;
pub mod process;
pub mod random;
pub mod request_socket;
pub mod resource_limit;
pub mod scheduling;
pub mod sealed;
pub mod segment;
mod setters;
pub mod sibling;
pub mod signals;
pub mod sync;
pub mod thin_bytes;
pub mod wait;
pub mod wake_set;

pub use error_text::chain;
