//! Payloads that lie in the worker's own memory, from where the host copies them once.
//!
//! A payload in the arena is copied twice, into the arena and out of it. Where the host may read
//! the memory of its worker, a large one stays where it is:
//!
//! ```text
//! worker                                       host
//! takes a block without payload, exports it,
//! and names it and the payload's address   --> copies the payload, or refuses
//! [does nothing to the payload]            <-- releases the block
//! ```
//! The worker offers a payload only if the host has said, in a word of the control page, that it
//! may read. The host says so when it gets the first large payload through the arena, so that
//! neither touches the page before. If it cannot read later, because the worker has become another
//! user, it takes that back before it releases the block, and the worker sends the payload in
//! another way.

use std::io;
use std::sync::Arc;

use super::budget::WhenFull;
use super::control;
use super::loan::Loan;
use super::reach::{MAX_OFFERED, OFFERED, wait_for_release};
use super::result::ResultArena;
use super::result_block::FrozenBlock;
use crate::foreign_memory::{self, Part};
use crate::numbers::{Numbers, Unit};

/// An offered payload, as its worker sees it.
#[derive(Debug)]
pub struct Offer(FrozenBlock);

impl ResultArena {
    /// Returns an offer for a payload of `length` bytes, which is named by a message that must
    /// follow. Returns `None` if the host has to get the payload in another way.
    pub fn offer(self: &Arc<Self>, length: usize) -> Option<Offer> {
        if !(OFFERED..=MAX_OFFERED).contains(&length) || !self.is_reached() {
            return None;
        }
        let block = self.allocate_block(0, WhenFull::Exceed).ok()?.freeze().ok()?;
        block.export();
        Some(Offer(block))
    }
}

impl Offer {
    /// Returns the offset of the block for the message.
    pub fn offset(&self) -> usize {
        self.0.offset()
    }

    /// Blocks until the host no longer needs the payload. Returns `false` if it has not copied it.
    pub fn wait(self) -> bool {
        wait_for_release(&self.0);
        self.0.arena().is_reached()
    }
}

impl Loan {
    /// Copies the payload of a length at an address, which the worker offers by this block. The
    /// worker may be lying, or have ended. For that and the `parts`, see
    /// [`foreign_memory::copy_from`].
    ///
    /// # Errors
    /// As `copy_from`.
    pub fn copy_offered(
        &self,
        place: (u64, usize),
        unit: Unit,
        parts: usize,
        spread: impl FnOnce(&mut [Part<'_>]),
    ) -> io::Result<Numbers> {
        foreign_memory::copy_from(self.view().reader().pid(), place, unit, parts, spread)
    }

    /// Refuses this offer, and all later ones.
    pub fn refuse(&self) {
        self.view().reader().refuse(control::offers(self.view().mapping()));
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::super::{ResultView, Terms};
    use super::*;

    /// Returns both ends of an arena whose worker is this process.
    fn arena() -> (Arc<ResultView>, Arc<ResultArena>) {
        let host = ResultView::create("test", 4 * OFFERED, usize::MAX, Terms::default()).unwrap();
        let descriptor = host.as_fd().try_clone_to_owned().unwrap();
        let worker = ResultArena::open(descriptor, host.len(), Terms::default()).unwrap();
        host.set_worker(std::process::id());
        (host, worker)
    }

    /// Has a large payload pass through the arena.
    fn pass(host: &Arc<ResultView>, worker: &Arc<ResultArena>) {
        let (offset, length) = worker.put(&[&vec![1; OFFERED]]).unwrap();
        drop(host.loan(offset, length).unwrap());
    }

    #[test]
    fn offers_begin_with_the_second_large_payload() {
        let (host, worker) = arena();
        assert!(worker.offer(OFFERED).is_none());
        pass(&host, &worker);
        for length in [OFFERED - 1, MAX_OFFERED + 1] {
            assert!(worker.offer(length).is_none());
        }
        let payload = brigade_testkit_core::payload(0, OFFERED);
        let offer = worker.offer(payload.len()).unwrap();
        let loan = host.loan_buffer(offer.offset(), 0).unwrap();
        let address = payload.as_ptr().expose_provenance() as u64;
        std::thread::scope(|scope| {
            let waits = scope.spawn(move || offer.wait());
            for unit in [1, 8] {
                let unit = Unit::new(unit).unwrap();
                let copy = loan.copy_offered((address, payload.len()), unit, 1, |_| ()).unwrap();
                assert!(copy.as_bytes() == payload, "{copy:?}");
            }
            drop(loan);
            assert!(waits.join().unwrap());
        });
        // Its block is free again.
        worker.reclaim();
        assert_eq!(worker.used(), 0);
    }

    #[test]
    fn an_offer_that_is_refused_is_the_last_one() {
        let (host, worker) = arena();
        pass(&host, &worker);
        let offer = worker.offer(OFFERED).unwrap();
        let loan = host.loan_buffer(offer.offset(), 0).unwrap();
        loan.refuse();
        drop(loan);
        assert!(!offer.wait());
        pass(&host, &worker);
        assert!(worker.offer(OFFERED).is_none());
    }

    #[test]
    fn a_worker_that_the_host_does_not_know_never_offers() {
        let (host, worker) = arena();
        host.set_worker(0);
        pass(&host, &worker);
        assert!(worker.offer(OFFERED).is_none());
    }
}
