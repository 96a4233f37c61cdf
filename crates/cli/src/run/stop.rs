//! Handles Ctrl-C and other requests to stop, and the ends of adopted processes.

use std::fs;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread;

use brigade::runner::Stopper;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;

use super::event_queue::EventQueue;

/// Stops the run at the first stop signal, and kills its jobs at the second. Pauses it at Ctrl-Z.
///
/// A signal that is ignored at the start stays ignored: `nohup`, and shells that start a background
/// job, rely on that. SIGCHLD is handled in any case. Nothing else reports that an adopted process
/// has ended while its job runs; and while SIGCHLD is ignored, the kernel keeps no exit status of
/// any job.
///
/// Returns the place of the first signal that stops the run.
pub(super) fn on_signals(stopper: Stopper, queue: EventQueue) -> io::Result<Arc<OnceLock<i32>>> {
    let ignored = ignored(&fs::read_to_string("/proc/self/status")?);
    let stops =
        [SIGINT, SIGTERM, SIGHUP, SIGTSTP].into_iter().filter(|signal| !ignored.contains(signal));
    let mut signals = Signals::new(stops.chain([SIGCHLD]))?;
    let first = Arc::<OnceLock<i32>>::default();
    let recorded = Arc::clone(&first);
    // Blocks in a read for as long as the program runs.
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in &mut signals {
            match signal {
                SIGCHLD => stopper.wake(),
                SIGTSTP => stopper.suspend(),
                _ => {
                    recorded.get_or_init(|| signal);
                    stopper.stop();
                    queue.request_stop();
                }
            }
        }
    })?;
    Ok(first)
}

/// Returns the ignored signals, from the kernel's status of this process.
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
