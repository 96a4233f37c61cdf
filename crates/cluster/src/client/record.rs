//! The client's record of a single task: the promise of its outcome. The driver stores it.

use std::sync::Arc;
use std::task::Waker;

use brigade_codec::CodecError;
use brigade_sys::catch_panic::catch_panic;
use brigade_task::TaskError;
use brigade_task::backend::sync::AtomicBool;
use brigade_task::backend::{self, Backend, Content, Promise, Wait};
use brigade_wire::TaskId;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use tracing::error;

use super::machine::Ticket;

/// The promise of a task's outcome.
pub(super) type Record = Promise<Facts>;

/// The facts that are known of a task from the start.
#[expect(unnameable_types, reason = "the type of a handle, a map or a future has it inside")]
pub struct Facts {
    id: TaskId,
    pub(super) ticket: Ticket,
    pub(super) label: Option<Arc<str>>,
    ended: AtomicBool,
    cluster: Arc<dyn Backend<Self>>,
}

/// The encoded value of a task.
#[derive(Debug, Clone)]
#[expect(unnameable_types, reason = "the type of a handle, a map or a future has it inside")]
pub struct Encoded(Bytes);

impl Facts {
    pub(super) fn new(
        ticket: Ticket,
        label: Option<Arc<str>>,
        cluster: Arc<dyn Backend<Self>>,
    ) -> Self {
        Self { id: TaskId::new(ticket + 1), ticket, label, ended: AtomicBool::new(false), cluster }
    }
}

brigade_sys::debug_fields!(impl Facts { id, label });

/// Stores the outcome and wakes everybody who waits for it. A second one is ignored.
pub(super) fn complete(record: &Record, outcome: Result<Bytes, TaskError>) {
    if !record.is_pending() {
        return;
    }
    let before = record.complete(outcome.map(Encoded));
    if let Some(waiters) = before.and_then(Content::into_waiters) {
        run_wakers(waiters.notify().wakers);
    }
}

/// Runs the wakers of futures. One that panics does not affect the others.
fn run_wakers(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        if let Err(message) = catch_panic(|| waker.wake()) {
            error!(message, "waker panicked");
        }
    }
}

impl backend::Facts for Facts {
    /// The message of the task has the argument.
    type Argument = ();
    type Value = Encoded;

    fn id(&self) -> TaskId {
        self.id
    }

    fn ended(&self) -> &AtomicBool {
        &self.ended
    }

    fn label(&self) -> Option<&Arc<str>> {
        self.label.as_ref()
    }

    fn executor(&self) -> &Arc<dyn Backend<Self>> {
        &self.cluster
    }
}

impl From<backend::Bytes> for Encoded {
    fn from(bytes: backend::Bytes) -> Self {
        Self(Bytes::copy_from_slice(&bytes))
    }
}

impl backend::Value for Encoded {
    fn into_bytes(self) -> Result<backend::Bytes, Self> {
        Err(self)
    }

    fn share(&mut self) -> Self {
        self.clone()
    }

    fn decode<R: DeserializeOwned + 'static>(self) -> Result<R, CodecError> {
        brigade_codec::decode(&self.0)
    }
}
