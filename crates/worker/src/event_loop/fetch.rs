//! Numbers that are apart from an argument, and that the host copies when its task begins.

use brigade_sys::numbers::{Mark, Numbers};
use brigade_wire::link::LinkSender;
use brigade_wire::segments::{self, Apart, Segment};
use brigade_wire::{FromWorker, Run, Wanted};

use super::{Reporter, argument};
use crate::arenas::Arenas;
use crate::error::LoopError;

impl<S: LinkSender> Reporter<S> {
    /// Gets the numbers that are apart from the argument. Returns `None` if there is no memory for
    /// them.
    #[cold]
    pub(super) fn fetch(
        &mut self,
        arenas: Option<&Arenas>,
        is_known: bool,
        run: &Run<'_>,
    ) -> Result<Option<Vec<(Mark, Numbers)>>, LoopError> {
        let segments = argument(arenas, run).and_then(|bytes| segments::split(bytes).ok());
        let segments = segments.into_iter().flat_map(|(_, segments)| segments);
        let fetched = segments.filter_map(Segment::apart).map(|apart| {
            let Some(arenas) = arenas else { return Ok(None) };
            let numbers = self.fetch_numbers(arenas, is_known, run.ring_index, &apart)?;
            Ok(numbers.map(|numbers| (apart.mark, numbers)))
        });
        fetched.collect()
    }

    fn fetch_numbers(
        &mut self,
        arenas: &Arenas,
        is_known: bool,
        ring_index: u16,
        apart: &Apart,
    ) -> Result<Option<Numbers>, LoopError> {
        loop {
            let landing = arenas.results.landing(apart.length, apart.unit, is_known);
            let Some(landing) = landing else { return Ok(None) };
            let (block, address) = (landing.offset() as u64, landing.address());
            self.send(&FromWorker::Wants(Wanted { ring_index, block, address }))?;
            if let Some(numbers) = landing.wait() {
                return Ok(Some(numbers));
            }
        }
    }
}
