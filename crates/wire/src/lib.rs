//! What crosses the process boundary: ids, messages, the handshake, the codec and the links.
//!
//! There is no policy in here and no thread. The principal types: [`ToWorker`] and [`FromWorker`] (the messages),
//! [`link::LinkSender`] and [`link::LinkReceiver`] (how they travel), [`slots::SlotTable`] (which task has begun, in shared
//! memory) and the [`handshake`]'s packets.
//!
//! ```
//! use brigade_wire::link::{LinkReceiver, LinkSender, memory};
//! use brigade_wire::{ToWorker, codec};
//!
//! let (mut host, mut worker) = memory::pair(1 << 20);
//! let mut head = Vec::new();
//! ToWorker::Stop.encode_head(&mut head);
//! host.sender.send(&head, &[])?;
//! let message = worker.receiver.receive()?;
//! assert_eq!(ToWorker::decode(message)?, ToWorker::Stop);
//!
//! let mut bytes = Vec::new();
//! codec::encode(&(1_u8, "two".to_owned()), &mut bytes, 100)?;
//! assert_eq!(codec::decode::<(u8, String)>(&bytes)?, (1, "two".to_owned()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariants:
//! - Bytes from another process are never trusted: a length is believed only as far as bytes arrive.
//! - The host's end of a link never blocks on sending.
//! - Of a worker that begins a task and a host that takes it back exactly one wins.

#![forbid(unsafe_code)]

pub mod codec;
mod error;
pub mod handshake;
mod ids;
pub mod items;
pub mod link;
mod message;
mod outcome;
pub mod ring;
pub mod slots;
pub mod version;

pub use error::{CodecError, MessageError};
pub use ids::{Attempt, TaskId, WorkerId};
pub use message::{Chunk, Finished, FromWorker, Function, Item, Place, Run, RunLimits, ToWorker};
pub use outcome::{Outcome, PanicReport};
