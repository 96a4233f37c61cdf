//! The signals that a process gets when it overruns, and the time between them.

use std::time::Duration;

use brigade_sys::process::Signal;
use serde::{Deserialize, Serialize};

/// The signals that are sent to a process one after the other until it is gone. The last one is
/// always SIGKILL.
///
/// ```
/// use brigade_timer::{Escalation, Signal};
/// use std::time::Duration;
///
/// // Dumps core, and allows two seconds for that.
/// let escalation = Escalation::kill().after(Signal::Abort, Duration::from_secs(2));
/// assert_eq!(escalation.steps(), [(Signal::Abort, Duration::from_secs(2))]);
/// assert!(Escalation::log_only().is_log_only());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Escalation(Kind);

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
enum Kind {
    LogOnly,
    #[default]
    Kill,
    KillAfter(Vec<Step>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Step {
    #[serde(with = "NumberedSignal")]
    signal: Signal,
    wait: Duration,
}

/// Maximum number of signals before SIGKILL.
pub const ESCALATION_LIMIT: usize = 8;

impl Escalation {
    /// Sends SIGKILL at once.
    pub const fn kill() -> Self {
        Self(Kind::Kill)
    }

    /// Sends no signal: the expiry is only reported as an event.
    pub const fn log_only() -> Self {
        Self(Kind::LogOnly)
    }

    /// Inserts a signal before SIGKILL, after the signals so far, and a time for it to take effect.
    ///
    /// # Panics
    /// If there are more than [`ESCALATION_LIMIT`] signals.
    #[must_use]
    pub fn after(self, signal: Signal, wait: Duration) -> Self {
        let mut steps = match self.0 {
            Kind::KillAfter(steps) => steps,
            Kind::Kill | Kind::LogOnly => Vec::new(),
        };
        assert!(
            steps.len() < ESCALATION_LIMIT,
            "an escalation has at most {ESCALATION_LIMIT} signals before SIGKILL"
        );
        steps.push(Step { signal, wait });
        Self(Kind::KillAfter(steps))
    }

    /// Returns the signals before SIGKILL, each with the time that follows it.
    pub fn steps(&self) -> Vec<(Signal, Duration)> {
        match &self.0 {
            Kind::KillAfter(steps) => steps.iter().map(|step| (step.signal, step.wait)).collect(),
            Kind::Kill | Kind::LogOnly => Vec::new(),
        }
    }

    /// Returns `true` if no signal is sent.
    pub fn is_log_only(&self) -> bool {
        self.0 == Kind::LogOnly
    }

    /// Returns `true` if `after` could have built it: a decoded one may be longer.
    pub(crate) fn is_within_limit(&self) -> bool {
        !matches!(&self.0, Kind::KillAfter(steps) if steps.len() > ESCALATION_LIMIT)
    }
}

/// The signals that an escalation may have. The place of each is its number in this protocol,
/// independent of the system's.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Signal")]
#[non_exhaustive]
enum NumberedSignal {
    Interrupt,
    Terminate,
    Kill,
    Stop,
    Continue,
    Abort,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::packet;

    #[test]
    fn signals_have_the_numbers_of_the_protocol() {
        let signals = [
            Signal::Interrupt,
            Signal::Terminate,
            Signal::Kill,
            Signal::Stop,
            Signal::Continue,
            Signal::Abort,
        ];
        for (number, signal) in (0..).zip(signals) {
            let escalation = Escalation::kill().after(signal, Duration::from_secs(3));
            // One step: its signal, and its time in seconds and nanoseconds.
            assert_eq!(packet(&escalation), [2, 1, number, 3, 0]);
        }
    }
}
