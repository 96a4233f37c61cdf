//! The standard library of Windows, with the modules `std::os::fd` and `std::os::unix` that it has
//! on Unix.
//!
//! Internal to Brigade: any release may change its interface. Programs use the facade `brigade`.
//!
//! Brigade is written for Linux and compiles elsewhere. On Windows each crate takes this one for
//! the standard library, so that its code is the same there:
//!
//! ```
//! #[cfg(windows)]
//! extern crate brigade_windows as std;
//!
//! use std::os::fd::OwnedFd;
//! # fn main() {}
//! ```
//!
//! A descriptor is an open file here. Whatever else a descriptor can be is an error before there
//! is one: see `brigade-elsewhere`.

//! # Invariants
//! - What cannot be done is an error, or has no effect that anybody could rely on.

#![expect(missing_docs, reason = "the standard library documents the same names")]
#![forbid(unsafe_code)]

#[doc(no_inline)]
pub use std::*;

pub mod os;
