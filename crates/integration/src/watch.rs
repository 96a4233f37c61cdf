//! Ends the run when something takes too long, and says what.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use brigade_testkit::PATIENCE;

/// Anything that takes longer counts as a hang.
const BOUND: Duration = Duration::from_secs(30 * PATIENCE);

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(200);

/// The call that each thread waits for, and its start.
type Awaited = Arc<Mutex<BTreeMap<String, (Instant, String)>>>;

/// A thread that watches all others.
pub(crate) struct Watch {
    awaited: Awaited,
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts to watch. `repeat` is the line that repeats the run.
    pub(crate) fn start(repeat: String) -> Self {
        let awaited = Awaited::default();
        let (alive, ended) = channel::<()>();
        let watched = Arc::clone(&awaited);
        let thread = thread::spawn(move || {
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let awaited = watched.lock().unwrap_or_else(PoisonError::into_inner);
                if awaited.values().any(|(since, _)| since.elapsed() > BOUND) {
                    // Standard error may be a pipe that nobody reads.
                    let mut out = std::io::stdout();
                    for (thread, (since, what)) in &*awaited {
                        let _ = writeln!(
                            out,
                            "{thread} has been waiting {:?} for {what}",
                            since.elapsed()
                        );
                    }
                    let _ = writeln!(out, "repeat with: {repeat}");
                    std::process::exit(101);
                }
            }
        });
        Self { awaited, alive: Some(alive), thread: Some(thread) }
    }

    /// Watches a call.
    pub(crate) fn during<R>(&self, what: &str, call: impl FnOnce() -> R) -> R {
        let thread = name(thread::current().id());
        let entry = (Instant::now(), what.to_owned());
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner).insert(thread.clone(), entry);
        let result = call();
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner).remove(&thread);
        result
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.alive.take());
        if let Some(thread) = self.thread.take() {
            // The thread cannot have panicked.
            let _ = thread.join();
        }
    }
}

fn name(thread: ThreadId) -> String {
    format!("{thread:?}")
}
