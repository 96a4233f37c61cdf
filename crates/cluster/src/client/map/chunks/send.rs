//! Makes chunks of inputs and sends them.

use brigade_task::SubmitErrorKind;
use serde::Serialize;

use super::{Chunks, InFlight};
use crate::client::failure::{self, closed};
use crate::client::machine::Ticket;
use crate::client::prepare::{Place, encode};
use crate::client::shared::Command;
use crate::client::submission::OutcomeTarget;
use crate::message::{INLINE_LIMIT, Items, ItemsBuilder};
use crate::names::ItemId;

impl<I: Iterator<Item: Serialize + 'static>> Chunks<'_, I> {
    /// Takes the inputs of one chunk and sends them.
    pub(super) fn send_chunk(&mut self) {
        let most = self.sizing.items().min(u32::try_from(self.window).unwrap_or(u32::MAX));
        let mut builder = ItemsBuilder::default();
        let mut failed = None;
        while builder.count() < most {
            let encoded = match self.next_input() {
                Some(Ok(encoded)) => encoded,
                Some(Err(kind)) => {
                    failed = Some(kind);
                    break;
                }
                None => break,
            };
            // The chunks of a batch have the same items in each run, whatever their size.
            let is_full = builder.count() > 0 && builder.len() + encoded.len() > INLINE_LIMIT;
            if is_full && self.batch.is_none() {
                self.held = Some(encoded);
                break;
            }
            builder.push(&encoded);
        }
        if builder.count() > 0 {
            let (count, bytes) = (builder.count(), builder.len());
            self.send(builder.finish(), count, bytes);
        }
        if let Some(kind) = failed {
            let label = self.settings.label.clone();
            self.add_unsent(failure::not_sent(kind, label));
        }
    }

    /// Takes an input and encodes it. Returns `None` after the last one.
    fn next_input(&mut self) -> Option<Result<Vec<u8>, SubmitErrorKind>> {
        if let Some(held) = self.held.take() {
            return Some(Ok(held));
        }
        let Some(input) = self.inputs.as_mut()?.next() else {
            self.inputs = None;
            return None;
        };
        let encoded = encode(&input);
        self.keep(input);
        Some(encoded)
    }

    fn send(&mut self, items: Items, count: u32, bytes: usize) {
        let index = self.next;
        self.next += 1;
        let position = self.placed;
        self.placed += u64::from(count);
        self.items += count as usize;
        self.bytes += bytes;
        let ticket = self.shared.next_ticket();
        self.in_flight.insert(index, InFlight { ticket, position, items: count, bytes });
        if let Err(kind) = self.try_send(items, count, index, ticket) {
            let error = failure::not_sent(kind, self.settings.label.clone());
            // The receiver is here.
            let _ = self.sender.send((index, Err(error)));
        }
    }

    fn try_send(
        &mut self,
        items: Items,
        count: u32,
        index: u64,
        ticket: Ticket,
    ) -> Result<(), SubmitErrorKind> {
        let place = match &self.batch {
            None => Place::Client,
            Some(batch) => Place::Batch(batch.clone(), ItemId::chunk(self.sent)),
        };
        self.sent += 1;
        if self.shared.is_forked() {
            return Err(SubmitErrorKind::Forked);
        }
        let target = OutcomeTarget::Chunk { outcomes: self.sender.clone(), index, items: count };
        let (shared, settings) = (self.shared, &self.settings);
        let submission = place.prepare(shared, ticket, &self.name, settings, items, target)?;
        shared.window.enter(self.until)?;
        let is_sent = shared.send(Command::Submit(Box::new(submission)));
        if is_sent { Ok(()) } else { Err(closed()) }
    }
}
