//! Panics of tasks become reports instead of lines on stderr.
//!
//! The panic hook knows message and place of a panic, and the stack below it; `catch_unwind` only gets the payload.
//! So a hook notes what it sees and [`run`] picks the note up. The hook acts only on the thread that is inside
//! [`run`]; the panics of all other threads go to the hook that was there before.
//!
//! A panic that ends the process cannot become a report, so it must not be silenced: with `panic = "abort"` the hook
//! is not installed, and before a panic that may not unwind the note of the panic that led to it is printed.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;
use std::{env, mem};

use brigade_wire::PanicReport;

use crate::bounded::bounded;
use crate::last_words::last_words;

/// A message beyond this is cut. With the backtrace it stays below what every link carries beside a result
/// (`brigade_wire::link::HEAD_LIMIT`), however small the limit of results is.
const MESSAGE_LIMIT: usize = 16 * 1024;

/// A backtrace beyond this, of a deep recursion, is cut.
const BACKTRACE_LIMIT: usize = 32 * 1024;

/// What the runtime says when a panic meets code that must not unwind; the process aborts right after.
const CANNOT_UNWIND: [&str; 2] =
    ["panic in a function that cannot unwind", "panic in a destructor during cleanup"];

thread_local! {
    /// Whether this thread is inside `run`.
    static RUNNING: Cell<bool> = const { Cell::new(false) };
    /// The latest panic inside `run`; the task itself may have caught it.
    static NOTE: RefCell<Option<Note>> = const { RefCell::new(None) };
}

struct Note {
    message: String,
    location: Option<String>,
    /// Resolved to names only when a report is made of it, after unwinding.
    backtrace: Option<Backtrace>,
}

/// Installs the hook, once in a process.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    if cfg!(panic = "abort") {
        return;
    }
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !note(panic) {
                previous(panic);
            }
        }));
    });
}

/// Runs `task`; a panic in it becomes a report.
pub(crate) fn run<T>(task: impl FnOnce() -> T) -> Result<T, PanicReport> {
    RUNNING.set(true);
    // What the task leaves half done is only its own: the loop clears the result before it is used again.
    let outcome = panic::catch_unwind(AssertUnwindSafe(task)).map_err(report);
    RUNNING.set(false);
    NOTE.take();
    outcome
}

/// Notes a panic if this thread is inside `run`, and says whether it did.
fn note(panic: &PanicHookInfo<'_>) -> bool {
    if !is_running() {
        return false;
    }
    let message = message_of(panic.payload());
    if CANNOT_UNWIND.contains(&message.as_str()) {
        if let Some(earlier) = NOTE.take() {
            last_words(&earlier);
        }
        return false;
    }
    let wanted = env::var_os("RUST_BACKTRACE").is_none_or(|value| value != "0");
    let note = Note {
        message,
        location: panic.location().map(ToString::to_string),
        backtrace: wanted.then(Backtrace::force_capture),
    };
    NOTE.set(Some(note));
    true
}

/// Whether this thread is inside `run`. A thread that is ending is not.
fn is_running() -> bool {
    RUNNING.try_with(Cell::get).unwrap_or(false)
}

fn report(payload: Box<dyn Any + Send>) -> PanicReport {
    let message = message_of(&*payload);
    let note = NOTE.take();
    discard(payload);
    // No note, or the note of another panic: the task raised this one without the hook (`resume_unwind`), or it
    // has replaced the hook.
    let note = note.filter(|note| note.message == message);
    let (location, backtrace) = match note {
        Some(note) => (note.location, note.backtrace),
        None => (None, None),
    };
    let backtrace = backtrace.map_or_else(String::new, |frames| bounded(&frames, BACKTRACE_LIMIT));
    PanicReport { message, location, backtrace }
}

/// Drops a payload, whose own drop may panic, and so may the drop of that panic's payload.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(second) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(second);
    }
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        bounded(text, MESSAGE_LIMIT)
    } else if let Some(text) = payload.downcast_ref::<String>() {
        bounded(text, MESSAGE_LIMIT)
    } else {
        "non-string payload".to_owned()
    }
}

impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the task panicked")?;
        if let Some(location) = &self.location {
            write!(out, " at {location}")?;
        }
        write!(out, ": {}", self.message)
    }
}

#[cfg(test)]
mod tests;
