//! Writes timelines in Chrome's trace format, which [Perfetto](https://ui.perfetto.dev) opens.
//!
//! Programs can use this crate alone, without the facade `brigade`.
//!
//! A [`Trace`] has rows, on which slices of time lie one after the other, points in time, and
//! counters. Times count from the start of the trace.
//!
//! ```
//! use std::time::Duration;
//!
//! use brigade_trace::Trace;
//! use serde_json::json;
//!
//! # fn main() -> std::io::Result<()> {
//! let mut trace = Trace::array(Vec::new())?;
//! trace.name_process("my program")?;
//! trace.name_row(1, "first row")?;
//! let (start, time) = (Duration::ZERO, Duration::from_micros(250));
//! trace.slice(1, ("compile", "job"), (start, time), None, &json!({ "attempt": 1 }))?;
//! trace.counter("queue", Duration::from_micros(250), &json!({ "waiting": 3 }))?;
//! let json = trace.finish()?;
//! assert!(serde_json::from_slice::<serde_json::Value>(&json).is_ok());
//! # Ok(())
//! # }
//! ```

//! # Invariants
//! - After each event, only the closing brackets are missing. The format allows an array without
//!   its end, so the trace of a program that was killed opens too.
//! - Names are escaped, whatever they are.

#![forbid(unsafe_code)]

#[cfg(feature = "timeline")]
#[doc(hidden)]
pub mod timeline;
mod trace;

pub use trace::Trace;
