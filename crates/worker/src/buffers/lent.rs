//! The buffers that the host lends to this worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brigade_wire::MessageError;
use brigade_wire::buffers::{self, Buffer, MAX};
use brigade_wire::shared::{ArenaRef, SharedBuf};
use brigade_wire::{FromWorker, Location};

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
    name: Buffer<'static>,
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
        let (encoded, list) = buffers::split(argument).map_err(|error| error.to_string())?;
        let buffers = list.map(|buffer| self.resolve(buffer, arenas));
        Ok((encoded, buffers.collect::<Result<_, _>>()?))
    }

    fn resolve(
        &mut self,
        buffer: Buffer<'_>,
        arenas: Option<&Arenas>,
    ) -> Result<SharedBuf, String> {
        let (name, file, location) = match buffer {
            Buffer::Inline(bytes) => return Ok(SharedBuf::copy_of(bytes)),
            Buffer::Result(_) => return Err(NOT_HERE.to_owned()),
            Buffer::Argument(location) => (Buffer::Argument(location), None, location),
            Buffer::Foreign(file, location) => {
                (Buffer::Foreign(file, location), Some(file), location)
            }
        };
        let Arenas { arguments, results, others } = arenas.ok_or(NOT_HERE)?;
        let (offset, length) = range(location)?;
        let ended = Arc::new(AtomicBool::new(false));
        let guard = Some(Box::new(End(Arc::clone(&ended))) as Box<_>);
        let found = match file {
            None => {
                let arguments = arguments.as_ref().ok_or(NOT_HERE)?;
                SharedBuf::in_argument(arguments, offset, length, guard)
            }
            Some(file) if file.inode == results.reference().inode => {
                SharedBuf::in_own_results(results, offset, length, guard)
            }
            Some(file) => {
                let arena = ArenaRef { inode: file.inode, length: file.size };
                let arena = others.find(arena).map_err(|error| {
                    format!("cannot receive the shared memory of another worker: {error}")
                })?;
                SharedBuf::in_foreign(&arena, offset, length, guard)
            }
        };
        let found = found.ok_or(NOT_HERE)?;
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
    let appended: Result<(), MessageError> = buffers::append(&mut list, &names, usize::MAX);
    debug_assert!(appended.is_ok(), "there are at most as many as a list may have");
    list
}

fn range(location: Location) -> Result<(usize, usize), &'static str> {
    let offset = location.offset.try_into().map_err(|_| NOT_HERE)?;
    Ok((offset, location.length.try_into().map_err(|_| NOT_HERE)?))
}

const NOT_HERE: &str = "this worker has no access to the memory of a shared buffer";
