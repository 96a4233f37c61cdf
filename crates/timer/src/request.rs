//! What clients and server say to each other: one packet each, encoded by [`codec`].
//!
//! ```text
//! client: Hello { version }          server: Welcome, or Refused and the end
//! client: Acquire, Release, ...      server: nothing, unless it refuses them: Refused and the end
//! client: Count                      server: Count
//! ```
//! A request names no worker: whose it is the kernel says. Deadlines are on the monotonic clock, so that time spent on the
//! way changes nothing.

use brigade_wire::codec;
use serde::{Deserialize, Serialize};

use crate::ladder::Ladder;
use crate::scope::{SCOPE_LIMIT, Scope};

/// Of this protocol.
pub(crate) const VERSION: u16 = 2;

/// The most bytes of a packet: a scope, a ladder, and room.
pub(crate) const PACKET_LIMIT: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    Hello {
        version: u16,
    },
    Acquire {
        scope: Scope,
        /// Nanoseconds since the zero of the monotonic clock.
        deadline: u64,
        ladder: Option<Ladder>,
    },
    Release {
        scope: Scope,
    },
    /// Asks how many timers the process has.
    Count,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    Welcome,
    Refused { reason: String },
    Count(u64),
}

impl Request {
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let request: Self = codec::decode(bytes).map_err(|error| codec::chain(&error))?;
        match &request {
            Self::Acquire { scope, .. } | Self::Release { scope }
                if scope.length() > SCOPE_LIMIT =>
            {
                Err("a scope above the limit".into())
            }
            Self::Acquire { ladder: Some(ladder), .. } if !ladder.is_within_limit() => {
                Err("a ladder above the limit".into())
            }
            _ => Ok(request),
        }
    }
}

/// The packet of a request or an answer.
pub(crate) fn packet<T: Serialize + 'static>(message: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(32);
    codec::encode(message, &mut bytes, PACKET_LIMIT)
        .expect("all parts have limits, and their sum fits into a packet");
    bytes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use brigade_sys::process::Signal;
    use proptest::prelude::*;

    use super::*;
    use crate::ladder::LADDER_LIMIT;

    fn scope() -> impl Strategy<Value = Scope> {
        prop_oneof!["[a-z]{0,128}".prop_map(Scope::from), any::<u64>().prop_map(Scope::Unique)]
    }

    fn ladder() -> impl Strategy<Value = Ladder> {
        let step = (prop_oneof![Just(Signal::Abort), Just(Signal::Interrupt)], any::<Duration>());
        let kill = proptest::collection::vec(step, 0..=LADDER_LIMIT).prop_map(|steps| {
            steps
                .into_iter()
                .fold(Ladder::kill(), |ladder, (signal, wait)| ladder.after(signal, wait))
        });
        prop_oneof![Just(Ladder::log_only()), kill]
    }

    fn request() -> impl Strategy<Value = Request> {
        prop_oneof![
            any::<u16>().prop_map(|version| Request::Hello { version }),
            (scope(), any::<u64>(), proptest::option::of(ladder()))
                .prop_map(|(scope, deadline, ladder)| Request::Acquire { scope, deadline, ladder }),
            scope().prop_map(|scope| Request::Release { scope }),
            Just(Request::Count),
        ]
    }

    proptest! {
        #[test]
        fn a_request_arrives_as_it_was_sent_and_no_part_of_it_is_one(request in request()) {
            let packet = packet(&request);
            prop_assert!(packet.len() <= PACKET_LIMIT);
            for cut in 0..packet.len() {
                prop_assert!(Request::decode(&packet[..cut]).is_err());
            }
            prop_assert_eq!(Request::decode(&packet), Ok(request));
        }

        #[test]
        fn random_bytes_are_an_error_or_a_request_within_its_limits(bytes: Vec<u8>) {
            if let Ok(request) = Request::decode(&bytes) {
                packet(&request);
            }
        }
    }

    #[test]
    fn what_is_above_a_limit_is_refused() {
        let scope = Scope::from("x".repeat(SCOPE_LIMIT + 1));
        assert!(Request::decode(&packet(&Request::Release { scope })).is_err());
    }
}
