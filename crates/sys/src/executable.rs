//! Identifies functions by numbers, and proves that two processes run the same program.
//!
//! A worker is normally a second process of the host's own executable. A function of that
//! executable lies at another address there (the loader picks a random base), but at the same
//! distance from the base. [`FunctionOffset`] is that distance, and [`BuildIdentity`] is compared
//! before any such number is used.

mod entry;
mod identity;
mod offset;
mod origin;
mod program;
mod symbols;

pub use crate::error::{EntryError, ExecutableError};
pub use entry::{
    Adapter, EntryPoint, Invocation, Outlet, Refusal, StoreLarge, WithBuffers, entry_point,
};
pub use identity::{BuildIdentity, SameBuild, build_identity};
pub use offset::FunctionOffset;
pub use origin::{Origin, program_path};
pub use symbols::{Symbols, frames};
