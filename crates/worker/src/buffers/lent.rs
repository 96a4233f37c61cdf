//! The buffers that the host lends to this worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brigade_wire::segments::{self, MAX, Segment};
use brigade_wire::shared::SharedBuf;
use brigade_wire::{FromWorker, MessageError};

use crate::arenas::Arenas;

/// The buffers that the host lends to this worker.
#[derive(Debug, Default)]
pub(crate) struct Lent {
    /// Those of the current task.
    current: Vec<Loan>,
    /// Those of earlier tasks, which the host knows to be in use.
    kept: Vec<Loan>,
}

#[derive(Debug)]
struct Loan {
    name: Segment<'static>,
    /// Set when the last clone is gone.
    ended: Arc<AtomicBool>,
}

/// Ends a loan when it is dropped.
struct End(Arc<AtomicBool>);

impl Drop for End {
    fn drop(&mut self) {
        // Release: all reading of the bytes comes before.
        self.0.store(true, Ordering::Release);
    }
}

impl Loan {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

impl Lent {
    /// Returns `true` if there may be something to report.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_empty() && self.kept.is_empty()
    }

    /// Splits an argument into its encoding and its buffers.
    #[cold]
    pub(crate) fn open<'a>(
        &mut self,
        argument: &'a [u8],
        arenas: Option<&Arenas>,
    ) -> Result<(&'a [u8], Vec<SharedBuf>), String> {
        self.current.retain(|loan| !loan.has_ended());
        let (encoded, list) = segments::split(argument).map_err(|error| error.to_string())?;
        // The numbers have arrived.
        let buffers = list.filter(|segment| segment.apart().is_none());
        let buffers = buffers.map(|buffer| self.resolve(buffer, arenas));
        Ok((encoded, buffers.collect::<Result<_, _>>()?))
    }

    fn resolve(
        &mut self,
        buffer: Segment<'_>,
        arenas: Option<&Arenas>,
    ) -> Result<SharedBuf, String> {
        let (name, location) = match buffer {
            Segment::Inline(bytes) => return Ok(SharedBuf::copy_of(bytes)),
            Segment::Result(_) | Segment::Apart(_) => return Err(NOT_HERE.to_owned()),
            Segment::Argument(location) => (Segment::Argument(location), location),
            Segment::Foreign(arena, location) => (Segment::Foreign(arena, location), location),
        };
        let Arenas { arguments, results, others } = arenas.ok_or(NOT_HERE)?;
        let (offset, length) = location.in_memory().ok_or(NOT_HERE)?;
        let block = match name {
            Segment::Foreign(arena, _) if arena.inode == results.reference().inode => {
                results.lend(offset, length)
            }
            Segment::Foreign(arena, _) => {
                let arena = others.find(arena).map_err(|error| {
                    format!("cannot receive the shared memory of another worker: {error}")
                })?;
                arena.lend(offset, length)
            }
            _ => arguments.as_ref().and_then(|arguments| arguments.lend(offset, length)),
        };
        let ended = Arc::new(AtomicBool::new(false));
        let guard = Some(Box::new(End(Arc::clone(&ended))) as Box<_>);
        let found = SharedBuf::lent(block.ok_or(NOT_HERE)?, name, guard);
        self.current.push(Loan { name, ended });
        Ok(found)
    }

    /// Passes to `send` the reports about buffers that the current task has kept, and about those
    /// that an earlier one had kept until now. Call it before the outcome of the task is sent.
    #[cold]
    pub(crate) fn report<E>(
        &mut self,
        mut send: impl FnMut(&FromWorker<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let released = self.kept.extract_if(.., |loan| loan.has_ended()).collect::<Vec<_>>();
        self.current.retain(|loan| !loan.has_ended());
        for loans in self.current.chunks(MAX) {
            send(&FromWorker::Keeps(&list(loans)))?;
        }
        for loans in released.chunks(MAX) {
            send(&FromWorker::Releases(&list(loans)))?;
        }
        self.kept.append(&mut self.current);
        Ok(())
    }
}

fn list(loans: &[Loan]) -> Vec<u8> {
    let names: Vec<_> = loans.iter().map(|loan| loan.name).collect();
    let mut list = Vec::new();
    let appended: Result<(), MessageError> = segments::append(&mut list, &names, usize::MAX);
    debug_assert!(appended.is_ok(), "there are at most as many as a list may have");
    list
}

const NOT_HERE: &str = "this worker has no access to the memory of a shared buffer";
