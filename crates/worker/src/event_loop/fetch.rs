//! Arguments that the host has kept, and copies when their tasks begin.

use brigade_sys::executable::OwnedArgument;
use brigade_sys::numbers::{Numbers, Unit};
use brigade_wire::codec::parts::Table;
use brigade_wire::link::LinkSender;
use brigade_wire::{FromWorker, Kept, Run, Wanted};

use super::{Reporter, argument};
use crate::arenas::Arenas;
use crate::error::LoopError;

impl<S: LinkSender> Reporter<S> {
    /// Gets an argument that the host has kept, or its parts. Returns `None` if there is no memory
    /// for them.
    #[cold]
    pub(super) fn fetch(
        &mut self,
        arenas: Option<&Arenas>,
        is_known: bool,
        run: &Run<'_>,
        kept: Kept,
    ) -> Result<Option<OwnedArgument>, LoopError> {
        let mut fetch = |length: usize, unit: Unit| {
            let Some(arenas) = arenas else { return Ok(None) };
            self.fetch_numbers(arenas, is_known, run.ring_index, length, unit)
        };
        let (length, counted) = match kept {
            Kept::Whole { length, counted } => (length, counted),
            Kept::Parts => {
                let table = argument(arenas, run).and_then(Table::of);
                let places = table.map_or(Vec::new(), |table| table.parts).into_iter();
                let parts = places.map(|place| fetch(place.length, place.unit));
                let parts = parts.collect::<Result<Option<Vec<_>>, _>>()?;
                return Ok(parts.map(OwnedArgument::Parts));
            }
        };
        let Ok(length) = usize::try_from(length) else { return Ok(None) };
        let numbers = fetch(length, counted.unwrap_or(Unit::BYTE))?;
        let is_counted = counted.is_some();
        Ok(numbers.map(|numbers| OwnedArgument::Whole { numbers, is_counted }))
    }

    #[cold]
    fn fetch_numbers(
        &mut self,
        arenas: &Arenas,
        is_known: bool,
        ring_index: u16,
        length: usize,
        unit: Unit,
    ) -> Result<Option<Numbers>, LoopError> {
        loop {
            let landing = arenas.results.landing(length, unit, is_known);
            let Some(landing) = landing else { return Ok(None) };
            let (block, address) = (landing.offset() as u64, landing.address());
            self.send(&FromWorker::Wants(Wanted { ring_index, block, address }))?;
            if let Some(numbers) = landing.wait() {
                return Ok(Some(numbers));
            }
        }
    }
}
