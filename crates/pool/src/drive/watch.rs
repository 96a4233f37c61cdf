//! Looks at tasks while they run. No look that nobody asked for changes what a task does.
//!
//! Protocol: the reaper's tick looks, at the times that the scheduler sets. How far a task is
//! stands in the worker's table (`observe`), and what it uses, in its control group or in `/proc`
//! (`look`, `usage`). Where it is (`sample`) can be read from outside while it waits in the kernel.
//! One that computes is interrupted by a signal, only if a user asked and the pool allows it.

pub(super) mod look;
pub(super) mod observe;
pub(super) mod sample;
pub(super) mod slow;
pub(super) mod usage;
