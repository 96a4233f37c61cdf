//! The thread that notices when other processes return cores.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use brigade_sys::clock::now;
use brigade_sys::file_watch::FileWatch;
use brigade_sys::fork::Origin;
use brigade_sys::wait::{Waker, wait_readable};

use super::shared::Shared;

/// The locks of a closed file are released a moment after the close event, without another event.
const AFTER_CLOSE: [Duration; 3] =
    [Duration::from_millis(1), Duration::from_millis(10), Duration::from_millis(100)];

/// Runs the thread for as long as a pool with a lock file lives. The thread keeps no lease and no
/// pool alive.
pub(super) struct Watcher {
    stop: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
    /// A forked copy of the process shares the waker and does not have the thread.
    origin: Origin,
}

impl Watcher {
    pub(super) fn start(shared: &Arc<Shared>) -> io::Result<Option<Self>> {
        let Some(lock_file) = shared.lock_file() else { return Ok(None) };
        let watch = Arc::clone(lock_file.watch());
        let stop = Arc::new(Waker::new()?);
        let (theirs, shared) = (Arc::clone(&stop), Arc::downgrade(shared));
        let thread = thread::Builder::new()
            .name("brigade-cores".to_owned())
            .spawn(move || listen(&watch, &theirs, &shared))?;
        Ok(Some(Self { stop, thread: Some(thread), origin: Origin::here() }))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            // The thread belongs to the original, so it must not even be detached here.
            std::mem::forget(self.thread.take());
            return;
        }
        self.stop.wake();
        if let Some(thread) = self.thread.take()
            // A hook that drops the last handle of the pool runs on the thread itself.
            && thread.thread().id() != thread::current().id()
        {
            // The thread contains panics of hooks and does not panic itself.
            let _ = thread.join();
        }
    }
}

fn listen(watch: &FileWatch, stop: &Waker, shared: &Weak<Shared>) {
    let mut pauses = AFTER_CLOSE.len();
    loop {
        let deadline = AFTER_CLOSE.get(pauses).map(|pause| now().saturating_add(*pause));
        let ready = match wait_readable(&[watch.as_fd(), stop.as_fd()], deadline) {
            Ok(ready) => ready,
            Err(error) => {
                // Only for lack of memory. From then on waiters are woken by this process alone.
                tracing::error!(?error, "cores that other processes return are no longer noticed");
                return;
            }
        };
        if ready[1] {
            return;
        }
        let closed = watch.drain();
        let Some(shared) = shared.upgrade() else { return };
        let requests_wait = shared.recheck();
        pauses = match (requests_wait, closed) {
            (false, _) => AFTER_CLOSE.len(),
            (true, true) => 0,
            (true, false) => (pauses + 1).min(AFTER_CLOSE.len()),
        };
    }
}
