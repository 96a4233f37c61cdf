//! What happens to a worker that overruns: signals, with time between them.

use std::time::Duration;

use brigade_sys::process::Signal;
use serde::{Deserialize, Serialize};

/// The signals that a worker gets, one after the other, until it is gone. The last one is always SIGKILL.
///
/// ```
/// use brigade_timer::{Ladder, Signal};
/// use std::time::Duration;
///
/// // A core dump, and two seconds to write it.
/// let ladder = Ladder::kill().after(Signal::Abort, Duration::from_secs(2));
/// assert_eq!(ladder.steps(), [(Signal::Abort, Duration::from_secs(2))]);
/// assert!(Ladder::log_only().is_log_only());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ladder(Kind);

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

/// The most signals before SIGKILL.
pub const LADDER_LIMIT: usize = 8;

impl Ladder {
    /// SIGKILL at once.
    pub const fn kill() -> Self {
        Self(Kind::Kill)
    }

    /// No signal: the expiry is an event, and nothing else happens.
    pub const fn log_only() -> Self {
        Self(Kind::LogOnly)
    }

    /// Puts a signal, and some time for it to work, between the signals so far and SIGKILL.
    ///
    /// # Panics
    /// With more than [`LADDER_LIMIT`] signals.
    #[must_use]
    pub fn after(self, signal: Signal, wait: Duration) -> Self {
        let mut steps = match self.0 {
            Kind::KillAfter(steps) => steps,
            Kind::Kill | Kind::LogOnly => Vec::new(),
        };
        assert!(steps.len() < LADDER_LIMIT, "a ladder of more than {LADDER_LIMIT} signals");
        steps.push(Step { signal, wait });
        Self(Kind::KillAfter(steps))
    }

    /// The signals before SIGKILL, each with the time after it.
    pub fn steps(&self) -> Vec<(Signal, Duration)> {
        match &self.0 {
            Kind::KillAfter(steps) => steps.iter().map(|step| (step.signal, step.wait)).collect(),
            Kind::Kill | Kind::LogOnly => Vec::new(),
        }
    }

    /// Whether nothing is sent at all.
    pub fn is_log_only(&self) -> bool {
        self.0 == Kind::LogOnly
    }

    /// Whether it is one that `after` would make.
    pub(crate) fn is_within_limit(&self) -> bool {
        !matches!(&self.0, Kind::KillAfter(steps) if steps.len() > LADDER_LIMIT)
    }
}

/// Signals travel as numbers of our own.
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

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(signal: &Signal, out: S) -> Result<S::Ok, S::Error> {
        let index = SIGNALS.iter().position(|known| known == signal);
        let index = index.and_then(|index| u8::try_from(index).ok());
        out.serialize_u8(index.ok_or_else(|| serde::ser::Error::custom("an unknown signal"))?)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Signal, D::Error> {
        let index = u8::deserialize(from)?;
        SIGNALS
            .get(usize::from(index))
            .copied()
            .ok_or_else(|| D::Error::custom("an unknown signal"))
    }
}
