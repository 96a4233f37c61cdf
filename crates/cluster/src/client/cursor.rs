//! The place of a client among the outcomes of one origin: a pure state machine.
//!
//! Outcomes arrive over a push consumer that keeps nothing: it is not acknowledged, and it is gone
//! when its server is. So the place is kept here. When the consumer is silent or has skipped
//! something, another one takes over behind the last outcome that has arrived.

use std::time::Duration;

use crate::clock::Monotonic;

/// The server's heartbeat while there are no outcomes.
pub(super) const HEARTBEAT: Duration = Duration::from_millis(700);

/// Silence after which the consumer counts as dead.
const SILENCE: Duration = Duration::from_secs(2);

/// The place among the outcomes.
#[derive(Debug)]
pub(super) struct Cursor {
    /// The stream's sequence of the last outcome.
    last: u64,
    /// Number of messages that the consumer has delivered.
    delivered: u64,
    heard: Monotonic,
}

/// The meaning of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The next outcome, or a sign of life.
    Next,
    /// Known already.
    Old,
    /// Something before it was lost.
    Gap,
}

impl Cursor {
    /// Returns a place behind the given sequence, without a consumer.
    pub(super) fn behind(last: u64, now: Monotonic) -> Self {
        Self { last, delivered: 0, heard: now }
    }

    /// Returns the sequence of the last outcome.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Begins with another consumer. Returns the first sequence that it delivers.
    pub(super) fn restart(&mut self, now: Monotonic) -> u64 {
        self.delivered = 0;
        self.heard = now;
        self.last + 1
    }

    /// Places an outcome, by its sequences in the stream and in the consumer.
    pub(super) fn outcome(&mut self, in_stream: u64, in_consumer: u64, now: Monotonic) -> Place {
        self.heard = now;
        if in_consumer != self.delivered + 1 {
            return if in_consumer <= self.delivered { Place::Old } else { Place::Gap };
        }
        self.delivered = in_consumer;
        self.last = self.last.max(in_stream);
        Place::Next
    }

    /// Places a heartbeat, which says how many messages the consumer has delivered.
    pub(super) fn heartbeat(&mut self, delivered: Option<u64>, now: Monotonic) -> Place {
        self.heard = now;
        if delivered.is_some_and(|delivered| delivered > self.delivered) {
            Place::Gap
        } else {
            Place::Next
        }
    }

    /// Returns the time from which on the silence is too long.
    pub(super) fn silent_at(&self) -> Monotonic {
        self.heard + SILENCE
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_silent_consumer_is_replaced_behind_the_last_outcome() {
        let start = Monotonic::ZERO;
        let mut cursor = Cursor::behind(10, start);
        assert_eq!(cursor.restart(start), 11);
        assert_eq!(cursor.outcome(15, 1, start), Place::Next);
        assert_eq!(cursor.outcome(15, 1, start), Place::Old);
        assert_eq!(cursor.outcome(17, 3, start), Place::Gap);
        assert_eq!(cursor.heartbeat(Some(1), start), Place::Next);
        assert_eq!(cursor.heartbeat(Some(2), start), Place::Gap);
        assert_eq!(cursor.silent_at(), start + SILENCE);
        let later = start + SILENCE;
        assert_eq!(cursor.restart(later), 16);
        assert_eq!(cursor.heartbeat(None, later), Place::Next);
        assert_eq!(cursor.silent_at(), later + SILENCE);
    }

    proptest! {
        /// Whatever is lost, each outcome is taken once and in order.
        #[test]
        fn nothing_is_skipped(lost in prop::collection::vec(any::<bool>(), 1..300)) {
            let now = Monotonic::ZERO;
            let mut cursor = Cursor::behind(0, now);
            let mut taken = Vec::new();
            let mut lost = lost.into_iter();
            // The stream has every third sequence, because others belong to somebody else.
            let mut from = cursor.restart(now);
            let mut sent = 0;
            while taken.len() < 50 {
                sent += 1;
                let in_stream = (from.div_ceil(3) + sent - 1) * 3;
                if lost.next().unwrap_or(false) {
                    continue;
                }
                match cursor.outcome(in_stream, sent, now) {
                    Place::Next => taken.push(in_stream),
                    Place::Old => {}
                    Place::Gap => {
                        from = cursor.restart(now);
                        sent = 0;
                    }
                }
            }
            let expected: Vec<u64> = (1..=50).map(|number| number * 3).collect();
            prop_assert_eq!(taken, expected);
        }
    }
}
