//! The exit status, as GNU parallel has it.

use brigade::runner::{Ending, Halt, HaltOn, Reason, Summary, Threshold};

/// More failures than can be counted.
const MANY: u64 = 101;
/// What a shell says of a program that a signal has ended, less the signal.
const SIGNAL: i32 = 128;
/// The reader of our output has gone away: what a shell says of SIGPIPE.
pub(super) const BROKEN_PIPE: u8 = 141;

/// The exit status of a run that a signal has stopped.
pub(super) fn stopped(signal: Option<i32>) -> u8 {
    byte(SIGNAL + signal.unwrap_or(0))
}

/// The exit status of a run. `decisive` is how the job ended that met the policy, `signal` what stopped the run.
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

/// What a shell would say of the job.
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
