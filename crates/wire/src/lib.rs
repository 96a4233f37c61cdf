//! Defines what crosses the process boundary: ids, messages, the handshake, the codec and the
//! links.
//!
//! Internal to Brigade: any release may change its interface. Programs use the facade `brigade`.
//!
//! This crate has no policy and no threads. The main types are [`ToWorker`] and [`FromWorker`] (the
//! messages), [`link::LinkSender`] and [`link::LinkReceiver`] (the transport), [`slots::SlotTable`]
//! (the tasks that have started, in shared memory) and the packets of the [`handshake`].
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

//! # Invariants
//! - Bytes from another process are never trusted: no memory is allocated for a declared length
//!   before the bytes arrive.
//! - The host's end of a link never blocks on sending.
//! - If a worker starts a task while the host revokes it, exactly one of them wins.

// Items show the feature that they need.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Links of crates that are documented without this one lead there.
#![doc(html_root_url = "https://docs.rs/brigade-wire/latest")]
#![forbid(unsafe_code)]

#[cfg(windows)]
extern crate brigade_windows as std;

mod error;
pub mod exit_code;
pub mod fork;
pub mod fragments;
pub mod handshake;
pub mod items;
pub mod link;
mod location;
mod message;
mod outcome;
pub mod ring;
pub mod sealed_argument;
pub mod segments;
pub mod shared;
pub mod slots;
pub mod version;
mod word;
pub mod worker_event;
pub mod worker_thread;

pub use brigade_base::{Attempt, TaskId, WorkerId, seed_of_input, stable_hash};
pub use brigade_codec as codec;
pub use brigade_codec::CodecError;
pub use error::MessageError;
pub use location::Location;
pub use message::{
    Chunk, Finished, FinishedInline, FromWorker, Function, Item, Run, RunInline, RunLimits,
    TRACE_CONTEXT_LIMIT, ToWorker, Wanted,
};
pub use outcome::{Outcome, PanicReport, Segmented};
