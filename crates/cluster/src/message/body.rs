//! A message with items, in itself or in the object store.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Items, MessageError, encoded, from_bytes, with_head};

/// A task or an outcome, with its items.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Message<H> {
    pub(crate) head: H,
    pub(crate) body: Body,
}

/// The arguments of a task, or its outcomes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    Inline(Items),
    Stored(StoredBody),
}

/// Items in the object store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredBody {
    /// Name of the object in the bucket of the queue.
    pub(crate) object: String,
    /// Number of bytes of the object.
    pub(crate) length: u64,
}

impl<H: Serialize + DeserializeOwned + 'static> Message<H> {
    /// Returns the message. Its head ends with the object that has the items, if there is one.
    pub(crate) fn to_bytes(&self) -> Result<Bytes, MessageError> {
        let mut head = encoded(&self.head)?;
        let (stored, items): (Option<StoredBody>, &[u8]) = match &self.body {
            Body::Inline(items) => (None, items.as_bytes()),
            Body::Stored(stored) => (Some(stored.clone()), &[]),
        };
        head.extend(encoded(&stored)?);
        with_head(&head, items)
    }

    pub(crate) fn from_bytes(message: &Bytes) -> Result<Self, MessageError> {
        let ((head, stored), items) = from_bytes::<(H, Option<StoredBody>)>(message)?;
        let body = match stored {
            Some(_) if !items.is_empty() => {
                return Err(MessageError::malformed("it has both items and an object"));
            }
            Some(stored) => Body::Stored(stored),
            None => Body::Inline(Items::from_bytes(items)),
        };
        Ok(Self { head, body })
    }
}
