//! Says why a worker died, and where it was.
//!
//! Internal to Brigade: any release may change its interface. Programs use the facade `brigade`.
//!
//! A worker that crashes writes a record (`brigade_sys::crash`). A [`CrashReport`] is made of it:
//! the signal, its [`Cause`], and the [`Stack`] of the thread as a list of [`Frame`]s.
//!
//! ```
//! use brigade_crash::{Cause, CrashReport, Files};
//! use brigade_sys::crash::Snapshot;
//!
//! let mut record = Snapshot { signal: 11, last_signal: 11, code: 1, ..Snapshot::default() };
//! record.address = 0x10;
//! let report = CrashReport::new(record, Files::OfWorker).expect("a signal of a crash");
//! assert_eq!(*report.cause(), Cause::NullPointer);
//! let text = "SIGSEGV (signal 11), invalid address 0x10 (a field of a null pointer)";
//! assert_eq!(report.to_string(), text);
//! ```

//! # Invariants
//!
//! - A record is hostile: a report of any record takes less than a megabyte and at most
//!   [`MAX_FRAMES`] frames, and nothing in it can make this crate panic.
//! - Unwinding and names are left until a stack is looked at, and happen on the thread that does.
//! - A worker in a sandbox never chooses a file that is read: only those are that this process has
//!   loaded as code itself ([`Files`]). Of others, sections are copied before they are read: a
//!   mapped file that shrinks would end this process. No file is opened that such a file names.
//! - Bytes of the stack never leave this crate: a report that is serialized has names and
//!   addresses.

// Links of crates that are documented without this one lead there.
#![doc(html_root_url = "https://docs.rs/brigade-crash/latest")]
#![forbid(unsafe_code)]

#[cfg(windows)]
extern crate brigade_windows as std;

mod cause;
mod end;
mod files;
#[cfg(feature = "backtrace")]
mod foreign;
mod frame;
mod mapping;
#[cfg(feature = "backtrace")]
mod names;
mod registers;
mod report;
mod stack;
#[cfg(feature = "backtrace")]
mod unwind;

pub use cause::Cause;
pub use end::End;
pub use files::Files;
pub use frame::{Frame, MAX_FRAMES, Origin};
pub use report::CrashReport;
pub use stack::Stack;
