//! Turns panics of tasks into reports instead of lines on stderr.
//!
//! The panic hook gets the message, the location and the backtrace of a panic; `catch_unwind` gets
//! only the payload. So a hook records them, and [`run`] picks them up. The hook acts only on the
//! thread that is inside [`run`]. Panics of all other threads go to the previous hook.
//!
//! A panic that ends the process cannot become a report, so it must not be silenced. With
//! `panic = "abort"` the hook keeps the message for the report of the crash, and lets the previous
//! hook print it. Before a panic that must not unwind, the same is done with the panic that led to
//! it.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::env;
use std::fmt;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};

use brigade_sys::catch_panic::{drop_payload, panic_text};
use brigade_sys::confinement::Rights;
use brigade_sys::crash;
use brigade_sys::executable::{Symbols, frames};
use brigade_wire::PanicReport;

use crate::bounded::bounded;
use crate::stderr::report_end;

/// Messages are truncated to this. With the backtrace, a report stays below the size that every
/// link carries besides a result (`brigade_wire::link::HEAD_LIMIT`), however small the limit of
/// results is.
const MESSAGE_LIMIT: usize = 16 * 1024;

/// Backtraces, which a deep recursion makes long, are truncated to this.
const BACKTRACE_LIMIT: usize = 32 * 1024;

/// The runtime's messages when a panic reaches code that must not unwind. The process aborts right
/// after.
const CANNOT_UNWIND: [&str; 2] =
    ["panic in a function that cannot unwind", "panic in a destructor during cleanup"];

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Idle) };
    /// The latest panic inside `run`, which the task itself may have caught.
    static NOTE: RefCell<Option<PanicNote>> = const { RefCell::new(None) };
}

/// The state of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is not inside `run`.
    Idle,
    Running,
    /// It is inside `run` and has panicked there, so there may be a note.
    Panicked,
}

struct PanicNote {
    message: String,
    location: Option<String>,
    /// Resolved to names only for the report, after unwinding.
    backtrace: Option<PanicFrames>,
}

enum PanicFrames {
    /// With lines, which need files.
    Open(Box<Backtrace>),
    /// The addresses, for [`FunctionNames`].
    Closed(Vec<usize>),
}

/// All that names of functions need in a process that can no longer open files.
struct FunctionNames {
    rights: Rights,
    symbols: Symbols,
}

static NAMES: OnceLock<FunctionNames> = OnceLock::new();

/// Set once this process has looked for names in the files of its program.
static NAMED: AtomicBool = AtomicBool::new(false);

/// Lets panics have backtraces after the initializer, which may close files and system calls.
pub(crate) fn keep_names() {
    // Without /proc there is nothing to keep.
    if let (Ok(rights), Ok(symbols)) = (Rights::now(), Symbols::open()) {
        let _ = NAMES.set(FunctionNames { rights, symbols });
    }
}

/// Looks whether the initializer has closed system calls.
pub(crate) fn look_for_a_sandbox() {
    if NAMES.get().is_none_or(|names| !names.rights.allow_calls()) {
        crash::expect_a_sandbox();
    }
}

/// Returns `true` if the names of a panic were looked for in files.
pub(crate) fn has_named() -> bool {
    NAMED.load(Ordering::Relaxed)
}

/// Reads what names are looked for in, once, so that copies of this process have it: that is nearly
/// all that a panic costs.
pub(crate) fn prepare_names() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| drop(Backtrace::force_capture().to_string()));
}

impl PanicFrames {
    fn capture() -> Self {
        if NAMES.get().is_none_or(|names| names.rights.allow_files()) {
            Self::Open(Box::new(Backtrace::force_capture()))
        } else {
            Self::Closed(frames())
        }
    }
}

impl fmt::Display for PanicFrames {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, NAMES.get()) {
            (Self::Open(backtrace), _) => {
                NAMED.store(true, Ordering::Relaxed);
                write!(out, "{backtrace}")
            }
            (Self::Closed(addresses), Some(names)) => {
                out.write_str(&names.symbols.describe(addresses))
            }
            (Self::Closed(_), None) => Ok(()),
        }
    }
}

/// Installs the hook, once per process.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if cfg!(panic = "abort") {
                crash::note_message(&describe(panic));
                previous(panic);
            } else if !note(panic) {
                previous(panic);
            }
        }));
    });
}

/// Runs `task` and turns a panic into a report. Finding names for that takes up to a tenth of a
/// second, which is no time of the task's; `panicked` is called before.
#[expect(clippy::inline_always, reason = "a call takes longer than all of this")]
#[inline(always)]
pub(crate) fn run<T>(
    task: impl FnOnce() -> T,
    panicked: impl FnOnce(),
) -> Result<T, Box<PanicReport>> {
    STATE.set(State::Running);
    // Only the task's own data can be left inconsistent. The event loop clears the result before it
    // is used again.
    let outcome = panic::catch_unwind(AssertUnwindSafe(task)).map_err(|payload| {
        panicked();
        Box::new(report(payload))
    });
    // Looking for a note takes as long as the rest of this function.
    if STATE.replace(State::Idle) == State::Panicked {
        NOTE.take();
    }
    outcome
}

/// Calls a function of a pool without workers, on the thread that asks for its value.
///
/// # Errors
/// Returns the report of a panic.
pub fn call_here<T>(call: impl FnOnce() -> T) -> Result<T, Box<PanicReport>> {
    install();
    let outside = STATE.get();
    let outcome = run(call, || {});
    STATE.set(outside);
    outcome
}

/// Records a panic and returns `true` if this thread is inside `run`.
fn note(panic: &PanicHookInfo<'_>) -> bool {
    if !is_running() {
        return false;
    }
    let message = bounded(panic_text(panic.payload()), MESSAGE_LIMIT);
    if CANNOT_UNWIND.contains(&message.as_str()) {
        match NOTE.take() {
            Some(PanicNote { message, location, .. }) => {
                let earlier = format!("the task {}", panicked(location, &message));
                crash::note_message(&earlier);
                report_end(&earlier);
            }
            None => crash::note_message(&describe(panic)),
        }
        return false;
    }
    let wanted = env::var_os("RUST_BACKTRACE").is_none_or(|value| value != "0");
    let note = PanicNote {
        message,
        location: panic.location().map(ToString::to_string),
        backtrace: wanted.then(PanicFrames::capture),
    };
    NOTE.set(Some(note));
    STATE.set(State::Panicked);
    true
}

/// Returns the message and the place of a panic.
fn describe(panic: &PanicHookInfo<'_>) -> String {
    panicked(panic.location(), &bounded(panic_text(panic.payload()), MESSAGE_LIMIT))
}

/// Returns what can follow the name of a function that has panicked.
pub(crate) fn panicked(location: Option<impl fmt::Display>, message: &str) -> String {
    match location {
        Some(location) => format!("panicked at {location}: {message}"),
        None => format!("panicked: {message}"),
    }
}

/// Returns `true` if this thread is inside `run`. A thread that is ending is not.
fn is_running() -> bool {
    STATE.try_with(Cell::get).is_ok_and(|state| state != State::Idle)
}

#[cold]
fn report(payload: Box<dyn Any + Send>) -> PanicReport {
    let message = bounded(panic_text(&*payload), MESSAGE_LIMIT);
    let note = NOTE.take();
    drop_payload(payload);
    // There is no record, or that of another panic, if the task raised this panic without the hook
    // (`resume_unwind`) or has replaced the hook.
    let note = note.filter(|note| note.message == message);
    let (location, backtrace) =
        note.map(|note| (note.location, note.backtrace)).unwrap_or_default();
    let backtrace = backtrace.map(|frames| bounded(&frames, BACKTRACE_LIMIT)).unwrap_or_default();
    PanicReport { message, location, backtrace }
}

#[cfg(test)]
mod tests;
