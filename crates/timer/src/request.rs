//! The messages between clients and server: one packet each, encoded by [`codec`].
//!
//! ```text
//! client: Hello { version }          server: Welcome, or Refused and the end
//! client: Acquire, Release, ...      server: nothing, unless it refuses them: Refused and the end
//! client: Count                      server: Count
//! ```
//! A request does not name a process: the kernel tells the server who sent it. Deadlines are on the
//! monotonic clock, so that time spent in transit changes nothing.

use brigade_codec as codec;
use serde::{Deserialize, Serialize};

use crate::escalation::Escalation;
use crate::scope::{SCOPE_LIMIT, Scope};

/// Version of this protocol.
pub(crate) const VERSION: u16 = 2;

/// Maximum size of a packet: a scope, an escalation, and some reserve.
pub(crate) const PACKET_LIMIT: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TimerRequest {
    Hello {
        version: u16,
    },
    Acquire {
        scope: Scope,
        /// In nanoseconds on the monotonic clock.
        deadline: u64,
        escalation: Option<Escalation>,
    },
    Release {
        scope: Scope,
    },
    /// Asks for the number of timers that the process has.
    Count,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    Welcome,
    Refused { reason: String },
    Count(u64),
}

impl TimerRequest {
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let request: Self = codec::decode(bytes).map_err(|error| codec::chain(&error))?;
        match &request {
            Self::Acquire { scope, .. } | Self::Release { scope }
                if scope.length() > SCOPE_LIMIT =>
            {
                Err("scope exceeds the limit".into())
            }
            Self::Acquire { escalation: Some(escalation), .. } if !escalation.is_within_limit() => {
                Err("escalation exceeds the limit".into())
            }
            _ => Ok(request),
        }
    }
}

/// Encodes a request or an answer as a packet.
#[expect(clippy::expect_used, reason = "all parts are bounded")]
pub(crate) fn packet<T: Serialize + 'static>(message: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(32);
    codec::encode(message, &mut bytes, PACKET_LIMIT)
        .expect("all parts are bounded and fit into a packet");
    bytes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use brigade_sys::process::Signal;
    use proptest::prelude::*;

    use super::*;
    use crate::escalation::ESCALATION_LIMIT;

    fn scope() -> impl Strategy<Value = Scope> {
        prop_oneof!["[a-z]{0,128}".prop_map(Scope::from), any::<u64>().prop_map(Scope::Unique)]
    }

    fn escalation() -> impl Strategy<Value = Escalation> {
        let step = (prop_oneof![Just(Signal::Abort), Just(Signal::Interrupt)], any::<Duration>());
        let kill = proptest::collection::vec(step, 0..=ESCALATION_LIMIT).prop_map(|steps| {
            steps.into_iter().fold(Escalation::kill(), |escalation, (signal, wait)| {
                escalation.after(signal, wait)
            })
        });
        prop_oneof![Just(Escalation::log_only()), kill]
    }

    fn request() -> impl Strategy<Value = TimerRequest> {
        prop_oneof![
            any::<u16>().prop_map(|version| TimerRequest::Hello { version }),
            (scope(), any::<u64>(), proptest::option::of(escalation())).prop_map(
                |(scope, deadline, escalation)| TimerRequest::Acquire {
                    scope,
                    deadline,
                    escalation
                }
            ),
            scope().prop_map(|scope| TimerRequest::Release { scope }),
            Just(TimerRequest::Count),
        ]
    }

    proptest! {
        #[test]
        fn a_request_survives_encoding_and_a_prefix_is_an_error(request in request()) {
            let packet = packet(&request);
            prop_assert!(packet.len() <= PACKET_LIMIT);
            for cut in 0..packet.len() {
                prop_assert!(TimerRequest::decode(&packet[..cut]).is_err());
            }
            prop_assert_eq!(TimerRequest::decode(&packet), Ok(request));
        }

        #[test]
        fn random_bytes_decode_to_an_error_or_a_bounded_request(bytes: Vec<u8>) {
            if let Ok(request) = TimerRequest::decode(&bytes) {
                packet(&request);
            }
        }
    }

    #[test]
    fn a_scope_above_the_limit_is_refused() {
        let scope = Scope::from("x".repeat(SCOPE_LIMIT + 1));
        assert!(TimerRequest::decode(&packet(&TimerRequest::Release { scope })).is_err());
    }
}
