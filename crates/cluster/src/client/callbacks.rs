//! Runs the callbacks of handles on a thread of their own, one after the other.

use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::sync::Mutex;
use tracing::error;

/// A callback with its outcome.
type Due = Box<dyn FnOnce() + Send>;

/// The callbacks that are due. The thread starts with the first callback, and ends when everybody
/// who may add one is gone.
#[derive(Default)]
pub(super) struct Callbacks {
    sender: Mutex<Option<Sender<Due>>>,
}

impl Callbacks {
    /// Returns the queue of the thread, which is started if there is none.
    pub(super) fn sender(&self) -> io::Result<Sender<Due>> {
        let mut slot = self.sender.lock();
        if let Some(sender) = &*slot {
            return Ok(sender.clone());
        }
        let (sender, receiver) = channel();
        let thread = thread::Builder::new().name("brigade-callbacks".to_owned());
        thread.spawn(move || run(&receiver))?;
        Ok(slot.insert(sender).clone())
    }
}

fn run(due: &Receiver<Due>) {
    while let Ok(call) = due.recv() {
        if let Err(message) = catch_panic(call) {
            // A subscriber that panics loses only its event; other callbacks are waiting.
            let _ = catch_panic(|| error!(message, "callback panicked"));
        }
    }
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Callbacks").finish_non_exhaustive()
    }
}
