//! Bounds calls that have no timeout of their own.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Ends the whole process unless it is dropped in time, and says what was awaited.
///
/// A call that hangs cannot be cancelled from within. Only the end of the process turns the hang
/// into a failure with a name. Workers end with it, because they lose their host.
#[must_use = "a watchdog watches as long as it is kept"]
#[derive(Debug)]
pub struct Watchdog {
    /// Progress is sent; the drop closes the channel.
    alive: Sender<()>,
}

impl Watchdog {
    /// Watches until it is dropped, for at most `bound` after the start or the last
    /// [`progress`](Self::progress).
    ///
    /// # Panics
    /// Panics if no thread can be started.
    pub fn new(what: impl Into<String>, bound: Duration) -> Self {
        let (alive, news) = channel();
        let what = what.into();
        thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || {
                let mut last = Ok(());
                while last.is_ok() {
                    last = news.recv_timeout(bound);
                }
                if last == Err(RecvTimeoutError::Timeout) {
                    // Written directly, because the test harness keeps the output of `eprintln` for
                    // a report that never comes.
                    let _ = writeln!(
                        std::io::stderr(),
                        "watchdog: timed out after {bound:?} waiting for {what}"
                    );
                    std::process::exit(101);
                }
            })
            .expect("the watchdog thread starts");
        Self { alive }
    }

    /// Starts the time anew.
    pub fn progress(&self) {
        // The thread listens until this is dropped.
        let _ = self.alive.send(());
    }
}
