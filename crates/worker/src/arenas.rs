//! Shared memory for large arguments and results, as a worker maps it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use brigade_sys::arena::{ArgumentView, LeftBlock, ResultArena};
use brigade_sys::copies;
use brigade_wire::handshake::Hello;

use crate::control::Control;
use crate::error::CannotStart;

mod others;

use others::OtherArenas;

/// Maximum number of blocks that a copy of the worker hands over.
const MAX_BLOCKS: usize = copies::MAX_WORDS / size_of::<LeftBlock>() * size_of::<u64>();

/// The arenas that hold large payloads.
#[derive(Debug)]
pub(crate) struct Arenas {
    /// `None` if workers may not read each other's arguments.
    pub(crate) arguments: Option<ArgumentView>,
    pub(crate) results: Arc<ResultArena>,
    /// The arenas of other workers.
    pub(crate) others: OtherArenas,
}

impl Arenas {
    /// Returns what another copy of the worker has to know of these. Returns `None` if it could not
    /// go on with them.
    pub(crate) fn hand_over(&self) -> Option<Vec<LeftBlock>> {
        self.others.is_empty().then(|| self.results.hand_over(MAX_BLOCKS)).flatten()
    }

    /// Goes on after a copy that has handed these over.
    pub(crate) fn take_over(&self, blocks: &[LeftBlock]) -> io::Result<()> {
        self.results.take_over(blocks)
    }

    /// Maps the arenas of the greeting. Returns `None` if it has none, or if this process lacks the
    /// address space for them and the host asks for that.
    pub(crate) fn open(
        hello: &Hello,
        control: &Arc<Control>,
        of_arguments: Option<OwnedFd>,
        of_results: Option<OwnedFd>,
    ) -> Result<Option<Self>, CannotStart> {
        let Some(of_results) = of_results else { return Ok(None) };
        // Mapping a size beyond the address space fails, which is the right error.
        let bytes = |size| usize::try_from(size).unwrap_or(usize::MAX);
        let view = of_arguments.map(|arena| ArgumentView::open(arena, bytes(hello.arenas.0)));
        let opened = view.transpose().and_then(|arguments| {
            let results = ResultArena::open(of_results, bytes(hello.arenas.1), hello.terms)?;
            Ok(Self { arguments, results, others: OtherArenas::new(Arc::clone(control)) })
        });
        match opened {
            Ok(arenas) => Ok(Some(arenas)),
            // The address space of this process has a limit that the host did not have when it
            // mapped them.
            Err(error) if hello.asks && error.kind() == io::ErrorKind::OutOfMemory => Ok(None),
            Err(error) => Err(CannotStart::Slots(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Arenas {
        /// Returns the arenas of a worker that reads no arguments of others.
        pub(crate) fn of_results(results: Arc<ResultArena>, control: &Arc<Control>) -> Self {
            Self { arguments: None, results, others: OtherArenas::new(Arc::clone(control)) }
        }
    }
}
