//! The meaning of a stream's answer to a publish.
//!
//! From `errors.json` and the sources of nats-server 2.9.10 to 2.15.1, all answers that a publish
//! with a `Nats-Msg-Id` or `Nats-Expected-Last-Subject-Sequence` can meet:
//!
//! | answer | from | meaning |
//! |---|---|---|
//! | no responders | 2.9 | again: no stream, or it has no leader |
//! | 10071 wrong last sequence: N | 2.9 | the subject has another message: look at that |
//! | 10164 wrong last sequence | 2.11 | again: another publish on the subject is in flight |
//! | 10158 duplicate message id is in process | 2.11 | again: so is an earlier attempt |
//! | 10163 expected last sequence … unavailable | 2.11 | again |
//! | 10167, 10210, 10211 too many … (429) | 2.11 | again |
//! | 10063 expected stream sequence does not match | 2.9 | again: its leader is not up to date |
//! | 10077 store failed: maximum messages or bytes | 2.9 | full |
//! | 10077 store failed: message too large | 2.15 | final |
//! | 10077 store failed, otherwise | 2.9 | again: the store is being closed |
//! | 10002 limits of the account, 10023 resources, 10028 memory, 10047 storage | 2.9 | full |
//! | 10006, 10007, 10009 not active, not assigned, not the leader | 2.9 | again |
//! | any other 503: 10008, 10035, 10039, 10076, … | 2.9 | again: the server starts, or elects |
//! | 10054, 10097 message or header too large | 2.9 | final |
//! | 10060, 10070 other expectations, 10109 sealed, 10111 roll-up, and all others | 2.9 | final |

use async_nats::{Message, StatusCode};
use serde::Deserialize;

use super::RefusalKind;

/// The meaning of a reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The stream has the message under this sequence, perhaps since an earlier attempt.
    Stored(u64),
    Refused(RefusalKind),
    /// There is no room, for this reason.
    Full(String),
    /// The message is to be sent again.
    Again,
}

/// The reply of a stream; fields that are not needed are left out.
#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    seq: u64,
    error: Option<ReplyError>,
}

#[derive(Deserialize)]
struct ReplyError {
    #[serde(default)]
    code: u32,
    #[serde(default)]
    err_code: u32,
    #[serde(default)]
    description: String,
}

impl Verdict {
    pub(super) fn of(message: &Message) -> Self {
        if message.status == Some(StatusCode::NO_RESPONDERS) {
            return Self::Again;
        }
        match serde_json::from_slice::<Reply>(&message.payload) {
            Ok(Reply { error: None, seq }) => Self::Stored(seq),
            Ok(Reply { error: Some(error), .. }) => Self::of_error(error),
            Err(error) => {
                let text = format!("the server's reply cannot be read: {error}");
                Self::Refused(RefusalKind::Other(text))
            }
        }
    }

    fn of_error(error: ReplyError) -> Self {
        let ReplyError { code, err_code, description } = error;
        let text = format!("{description} ({code}/{err_code})");
        match err_code {
            10_071 => Self::Refused(RefusalKind::Exists),
            10_077 if description.starts_with("maximum") => Self::Full(text),
            10_077 if description.contains("too large") => Self::Refused(RefusalKind::Other(text)),
            10_002 | 10_023 | 10_028 | 10_047 => Self::Full(text),
            10_006 | 10_007 | 10_009 | 10_158 | 10_164 => Self::Again,
            _ if code == 503 || code == 429 => Self::Again,
            _ => Self::Refused(RefusalKind::Other(text)),
        }
    }
}
