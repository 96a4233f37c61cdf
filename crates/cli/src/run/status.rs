//! The exit status, as in GNU parallel.

use brigade::runner::{Ending, Halt, HaltOn, Reason, Summary, Threshold};

/// The exit status that stands for any larger number of failures.
const MANY: u64 = 101;
/// The status of a program that was ended by a signal is this plus the signal, as in a shell.
const SIGNAL: i32 = 128;
/// The status after the reader of our output has gone away: a shell reports the same for SIGPIPE.
pub(super) const BROKEN_PIPE: u8 = 141;

/// Returns the exit status of a run that a signal has stopped.
pub(super) fn stopped(signal: Option<i32>) -> u8 {
    byte(SIGNAL + signal.unwrap_or(0))
}

/// Returns the exit status of a run. `decisive` is the ending of the job that met the halt policy,
/// `signal` the signal that stopped the run.
pub(super) fn of(
    summary: &Summary,
    halt: Option<Halt>,
    decisive: Option<&Ending>,
    total: Option<u64>,
    signal: Option<i32>,
) -> u8 {
    if summary.halted == Some(Reason::Stopped) {
        return stopped(signal);
    }
    let count = u8::try_from(summary.failed.min(MANY)).unwrap_or(u8::MAX);
    match halt.filter(|_| summary.halted == Some(Reason::Halted)) {
        Some(Halt { on: HaltOn::Success, .. }) => 0,
        Some(Halt { threshold: Threshold::Count(1), .. }) => decisive.map_or(count, code),
        None | Some(Halt { threshold: Threshold::Count(_), .. }) => count,
        Some(Halt { threshold: Threshold::Part(_), .. }) => {
            let total = total.unwrap_or(summary.failed).max(1);
            u8::try_from((summary.failed * 100).div_ceil(total)).unwrap_or(u8::MAX)
        }
    }
}

/// Returns the status that a shell would report for the job.
fn code(ending: &Ending) -> u8 {
    match ending {
        Ending::Exited(code) => byte(*code),
        Ending::Signalled(signal) => byte(SIGNAL + signal),
        Ending::NotStarted(failure) => byte(failure.code),
        _ => u8::MAX,
    }
}

fn byte(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(u8::MAX)
}
