//! Records why a process crashes, and where a thread is, in memory that it shares with its host.
//!
//! [`install`] prepares a worker. Its handlers fill one of two records of the shared memory and
//! send a packet to the host, which reads the record through a [`CrashArea`]:
//!
//! - The record of a crash is written at SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS and
//!   SIGTRAP. Then the signal has its former action, which ends the process.
//! - The record of a sample is written at SIGURG, after the host has [asked](CrashArea::ask) for
//!   it, by the main thread and no other. Then the thread goes on, unless it is about to be killed.
//!
//! A record has the signal, the registers, the part of the stack above the stack pointer, and the
//! lines of `/proc/self/maps` that say where programs and libraries lie.
//!
//! # Rules of the handlers
//!
//! - They only make system calls, and touch nothing but the record, the kernel's structures, and
//!   the stack of the thread. They need less than a kilobyte of stack, because the alternate stacks
//!   of the standard library are small.
//! - Nearly all of their system calls are those that a worker makes anyway, because a sandbox may
//!   forbid others.
//! - The first thread that crashes writes the record. A second one waits a moment for the end of
//!   the process.
//! - A record is written in phases, each of which is published after its words: a process that ends
//!   in between leaves a record that is shorter and right.
//! - In a copy of the process that `fork` has made they record nothing.
//! - A signal that has a handler already is left to it, except for the handler with which the
//!   standard library recognizes stack overflows. That one still gets the overflows, because it
//!   prints a line about them.
//!
//! # The host's side
//!
//! A worker can write anything at any time. [`CrashArea`] copies each word once, and bounds every
//! length; what the words mean is for its caller to check.
//!
//! A thread that waits in a system call needs no signal, which would end many of these calls: it is
//! [looked at](Look) from outside.

mod area;
mod context;
mod handler;
mod install;
mod look;
mod maps;
mod query;
mod record;

pub use area::{CrashArea, REGISTERS, Snapshot, WORDS};
pub(crate) use handler::{follow, sample_instead};
pub use install::{Notices, expect_a_sandbox, install, note_message, prepare};
pub(crate) use look::look;
pub use look::{Look, Ran, UNKNOWN};
