//! A bound for calls that have none of their own.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Ends the whole process, saying what was awaited, unless it is dropped in time.
///
/// A call that hangs cannot be taken back from within, so that only the end of the process makes the
/// hang a failure with a name. Workers follow, because their host is gone.
#[must_use = "a watchdog watches as long as it is kept"]
#[derive(Debug)]
pub struct Watchdog {
    // Never sent on; closed by the drop.
    _alive: Sender<()>,
}

impl Watchdog {
    /// Watches until it is dropped, at most for `bound`.
    ///
    /// # Panics
    /// When no thread can be started.
    pub fn new(what: impl Into<String>, bound: Duration) -> Self {
        let (alive, ended) = channel::<()>();
        let what = what.into();
        thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || {
                if ended.recv_timeout(bound) == Err(RecvTimeoutError::Timeout) {
                    // Directly, because the test harness keeps what `eprintln` writes for a report that never comes.
                    let _ = writeln!(
                        std::io::stderr(),
                        "watchdog: waited {bound:?} in vain for: {what}"
                    );
                    std::process::exit(101);
                }
            })
            .expect("a thread for the watchdog");
        Self { _alive: alive }
    }
}
