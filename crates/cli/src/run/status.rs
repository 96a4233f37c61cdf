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

/// The moment when a job met the halt policy.
#[derive(Debug, Clone)]
pub(super) struct Decision {
    /// The ending of that job.
    pub(super) ending: Ending,
    /// The number of failed jobs.
    pub(super) failed: u64,
}

/// Returns the exit status of a run. `signal` is the signal that stopped the run.
///
/// For GNU parallel, a run that a halt policy has ended is over then: jobs that fail later and a
/// signal do not count, and `done` without a failure yields 101.
pub(super) fn of(
    summary: &Summary,
    decided: Option<(Halt, &Decision)>,
    total: Option<u64>,
    signal: Option<i32>,
    is_gnu: bool,
) -> u8 {
    if summary.halted == Some(Reason::Stopped) && !(is_gnu && decided.is_some()) {
        return stopped(signal);
    }
    let Some((halt, decision)) = decided else { return of_failures(summary.failed) };
    let failed = if is_gnu { decision.failed } else { summary.failed };
    match (halt.on, halt.threshold) {
        (HaltOn::Success, _) => 0,
        (_, Threshold::Count(1)) => code(&decision.ending),
        (HaltOn::Done, Threshold::Count(_)) if is_gnu && failed == 0 => of_failures(MANY),
        (_, Threshold::Count(_)) => of_failures(failed),
        (_, Threshold::Part(_)) => of_part(failed, total),
    }
}

fn of_failures(failed: u64) -> u8 {
    u8::try_from(failed.min(MANY)).unwrap_or(u8::MAX)
}

fn of_part(failed: u64, total: Option<u64>) -> u8 {
    let total = total.unwrap_or(failed).max(1);
    u8::try_from((failed * 100).div_ceil(total)).unwrap_or(u8::MAX)
}

/// Returns the status that a shell would report for the job.
pub(crate) fn code(ending: &Ending) -> u8 {
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
