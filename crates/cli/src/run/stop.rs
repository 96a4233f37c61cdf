//! Ctrl-C and other requests to stop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use brigade::runner::Stopper;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The signal that came first, if any did.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard(Arc<AtomicI32>);

impl Heard {
    pub(super) fn first(&self) -> Option<i32> {
        Some(self.0.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }
}

/// Stops the run at the first signal that asks for it, and at once at the second.
pub(super) fn on_signals(stopper: Stopper) -> io::Result<Heard> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let heard = Heard::default();
    let first = heard.clone();
    // Waits in a read for as long as the program runs.
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in &mut signals {
            let _ = first.0.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
            stopper.stop();
        }
    })?;
    Ok(heard)
}
