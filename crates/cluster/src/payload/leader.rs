//! Reads objects from the leader of their stream.
//!
//! The client library asks any of three servers, and one that has not heard of the end of an object
//! yet delivers a part of it, or nothing. The leader has everything that was acknowledged, but it
//! answers one request for each part.

use async_nats::jetstream::object_store::ObjectInfo;
use brigade_codec::chain;
use data_encoding::BASE64URL;

use super::{PayloadError, Payloads};
use crate::message::{Items, StoredBody};
use crate::stored_message::{first_message, last_message};

impl Payloads {
    /// Reads an object, one request for each part.
    pub(super) async fn read_from_leader(
        &self,
        stored: &StoredBody,
    ) -> Result<Items, PayloadError> {
        let StoredBody { object, length } = stored;
        let failed = |reason: String| PayloadError::Unreachable { object: object.clone(), reason };
        let gone = || PayloadError::Gone(object.clone());
        let name = BASE64URL.encode(object.as_bytes());
        let subject = format!("$O.{}.M.{name}", self.name);
        let message = last_message(&self.stream, &subject).await.map_err(failed)?;
        let message = message.ok_or_else(gone)?;
        let info: ObjectInfo =
            serde_json::from_slice(&message.payload).map_err(|error| failed(chain(&error)))?;
        if info.deleted {
            return Err(gone());
        }
        let subject = format!("$O.{}.C.{}", self.name, info.nuid);
        let (mut bytes, mut next) = (Vec::new(), 1);
        for _ in 0..info.chunks {
            let part = first_message(&self.stream, &subject, next).await.map_err(failed)?;
            let part = part.ok_or_else(gone)?;
            bytes.extend_from_slice(&part.payload);
            next = part.sequence + 1;
            if bytes.len() as u64 > *length {
                break;
            }
        }
        if bytes.len() as u64 != *length {
            return Err(failed(format!("it has {} bytes of {length}", bytes.len())));
        }
        Ok(Items::from_bytes(bytes.into()))
    }
}
