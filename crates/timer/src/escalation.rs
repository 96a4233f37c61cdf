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
    #[serde(with = "number")]
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

/// Encodes signals as numbers of this protocol, independent of the system's.
mod number {
    use brigade_sys::process::Signal;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    const SIGNALS: [Signal; 6] = [
        Signal::Interrupt,
        Signal::Terminate,
        Signal::Kill,
        Signal::Stop,
        Signal::Continue,
        Signal::Abort,
    ];

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
    pub(super) fn serialize<S: Serializer>(signal: &Signal, out: S) -> Result<S::Ok, S::Error> {
        let index = SIGNALS.iter().position(|known| known == signal);
        let index = index.and_then(|index| u8::try_from(index).ok());
        out.serialize_u8(index.ok_or_else(|| serde::ser::Error::custom("unknown signal"))?)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Signal, D::Error> {
        let index = u8::deserialize(from)?;
        SIGNALS.get(usize::from(index)).copied().ok_or_else(|| D::Error::custom("unknown signal"))
    }
}
