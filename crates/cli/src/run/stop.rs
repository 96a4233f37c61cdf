//! Ctrl-C and other requests to stop, and the ends of adopted processes.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use brigade::runner::Stopper;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::desk::Desk;

/// The signal that came first, if any did.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard(Arc<AtomicI32>);

impl Heard {
    pub(super) fn first(&self) -> Option<i32> {
        Some(self.0.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }
}

/// Stops the run at the first signal that asks for it, and at once at the second.
///
/// A signal that is ignored stays ignored: `nohup`, and shells that start something in the background, want it so.
/// SIGCHLD is heard in any case. Nobody else tells that an adopted process has ended while its job runs; and while it is
/// ignored, the kernel keeps no exit status of any job.
pub(super) fn on_signals(stopper: Stopper, desk: Desk) -> io::Result<Heard> {
    let ignored = ignored(&fs::read_to_string("/proc/self/status")?);
    let stops = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !ignored.contains(signal));
    let mut signals = Signals::new(stops.chain([SIGCHLD]))?;
    let heard = Heard::default();
    let first = heard.clone();
    // Waits in a read for as long as the program runs.
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in &mut signals {
            if signal == SIGCHLD {
                stopper.wake();
                continue;
            }
            let _ = first.0.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
            stopper.stop();
            desk.asked_to_stop();
        }
    })?;
    Ok(heard)
}

/// The ignored signals, from what the kernel says of this process.
fn ignored(status: &str) -> Vec<i32> {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    (1..=64).filter(|signal| mask >> (signal - 1) & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_bit_is_the_first_signal() {
        assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000001003\n"), [SIGHUP, SIGINT, 13]);
        assert!(ignored("").is_empty());
    }
}
