//! Copies large values out of the memory of workers, and large arguments into it.
//!
//! Protocol: a look finds the message with the place, marks the worker's slot, and leaves the copy
//! as deferred work, which is done without the core's lock. Until then the task counts as running,
//! and nothing more is read of the worker, which waits. The copy of a value ends the task. If the
//! worker has died meanwhile, the report of its death does.
//!
//! The mark is removed before the worker is released: its next message rings, and must be seen.
//!
//! A copy takes up to a tenth of a second. So a caller hands over before it copies, and a thread
//! that others depend on leaves the copy to the cleaner's.

use std::any::Any;
use std::io;

use brigade_scheduler::Event;
use brigade_supervisor::threads::cleaner;
use brigade_supervisor::{WorkerProcess, note};
use brigade_sys::clock::now;
use brigade_sys::foreign_memory::Part;
use brigade_sys::numbers::{Mark, Numbers};
use brigade_sys::process::Process;
use brigade_wire::segments::Apart;
use brigade_wire::{Finished, WorkerId};

use crate::drive::deferred::Deferred;
use crate::drive::large::spread::{self, spread};
use crate::drive::large::{Large, LargeOffer, ToCopy, Want};
use crate::drive::outcome::{EventData, ended_event, finish_chunk};
use crate::drive::owner;
use crate::drive::shared::{Core, Shared};
use crate::payload::{SegmentedValue, Value};

/// The end of a copy.
enum CopyEnd {
    /// The parts of a value.
    Value(Vec<(Mark, Numbers)>),
    Argument,
    /// The worker has not the memory that it names.
    Lie(io::Error),
    /// This process does not reach it any more.
    Refused(io::Error),
    Dead,
}

impl ToCopy {
    /// Copies the value or argument, here or on the cleaner's thread.
    pub(in crate::drive) fn run(self, shared: &Shared) {
        if owner::is_depended_on() {
            cleaner::work_later(shared, Box::new(self));
        } else {
            self.copy(shared);
        }
    }

    fn copy(self, shared: &Shared) {
        if shared.is_forked() {
            return;
        }
        let Self { process, large } = self;
        let copied = match &large {
            Large::Value(offer) => read(offer, shared.cores).map(CopyEnd::Value),
            Large::Argument(want) => give(want, &process, shared.cores).map(|()| CopyEnd::Argument),
        };
        let copied = match copied {
            // Its number may have been another process's.
            _ if process.process().is_none_or(Process::has_ended) => CopyEnd::Dead,
            Ok(copied) => copied,
            Err(error) if is_lie(&error) => CopyEnd::Lie(error),
            Err(error) => CopyEnd::Refused(error),
        };
        let worker = process.worker();
        shared.with_core(|core, deferred| {
            core.end_copy(worker, large, copied, shared, deferred);
        });
    }
}

/// Reads the numbers that are apart from a value.
fn read(offer: &LargeOffer, cores: usize) -> io::Result<Vec<(Mark, Numbers)>> {
    let copied = offer.apart.iter().map(|&Apart { mark, address, length, unit }| {
        let spread = |parts: &mut [Part<'_>]| spread(parts, Part::copy);
        let parts = spread::parts(length, cores);
        Ok((mark, offer.loan.copy_offered((address, length), unit, parts, spread)?))
    });
    copied.collect()
}

/// Gives a part of an argument to the worker that asked for it.
fn give(want: &Want, process: &WorkerProcess, cores: usize) -> io::Result<()> {
    let Some(address) = want.address else {
        want.loan.fill(want.bytes());
        return Ok(());
    };
    process.process().map_or(Ok(()), |process| write(process, address, want.bytes(), cores))
}

/// Writes bytes to an address of a worker.
fn write(process: &Process, address: u64, bytes: &[u8], cores: usize) -> io::Result<()> {
    let size = bytes.len().div_ceil(spread::parts(bytes.len(), cores)).max(1);
    let parts = bytes.chunks(size).zip((0..).step_by(size));
    let mut parts: Vec<_> =
        parts.map(|(bytes, at)| (address.saturating_add(at), bytes, None)).collect();
    spread(&mut parts, |(address, bytes, written)| {
        written.get_or_insert_with(|| process.write_memory(*address, bytes));
    });
    parts.into_iter().try_for_each(|(.., written)| written.unwrap_or(Ok(())))
}

/// Makes the copy that was left to the cleaner's thread.
pub(in crate::drive) fn copy_left(work: Box<dyn Any + Send>, shared: &Shared) {
    if let Ok(to_copy) = work.downcast::<ToCopy>() {
        to_copy.copy(shared);
    }
}

/// Returns `true` if the worker has named memory that it does not have.
fn is_lie(error: &io::Error) -> bool {
    error.raw_os_error() == Some(BAD_ADDRESS)
}

/// `EFAULT`.
const BAD_ADDRESS: i32 = 14;

impl Core {
    fn end_copy(
        &mut self,
        worker: WorkerId,
        large: Large,
        copied: CopyEnd,
        shared: &Shared,
        deferred: &mut Deferred,
    ) {
        let Some(slot) = self.worker_slot_mut(worker) else { return };
        slot.awaits_copy = false;
        match copied {
            CopyEnd::Dead => {}
            CopyEnd::Refused(error) => {
                note!(deferred, DEBUG, %worker, %error, "a worker's memory is out of reach");
                large.loan().refuse();
            }
            CopyEnd::Lie(error) => {
                let problem = format!("named memory that it does not have: {error}");
                self.break_off(worker, problem, shared, deferred);
            }
            CopyEnd::Argument => {
                if let Large::Argument(want) = large {
                    want.kept.deliver(want.owed);
                }
            }
            CopyEnd::Value(parts) => {
                let Large::Value(LargeOffer { value, finished, loan, .. }) = large else { return };
                let value = Value::Segmented(Box::new(SegmentedValue { parts, ..value }));
                self.end_task(worker, &finished, value, shared, deferred);
                drop(loan);
            }
        }
    }

    /// Ends a task with the value that was copied.
    fn end_task(
        &mut self,
        worker: WorkerId,
        finished: &Finished<'_>,
        value: Value,
        shared: &Shared,
        deferred: &mut Deferred,
    ) {
        match finish_chunk(worker, self.scheduler.due(worker), finished) {
            Ok(end) => {
                let (event, data) = ended_event(worker, finished, end, Ok(value));
                self.handle(now(), event, data, shared, deferred);
            }
            Err(problem) => self.break_off(worker, problem, shared, deferred),
        }
    }

    /// Handles that a worker has broken the protocol.
    pub(in crate::drive) fn break_off(
        &mut self,
        worker: WorkerId,
        problem: String,
        shared: &Shared,
        deferred: &mut Deferred,
    ) {
        if let Some(connection) = self.connection_mut(worker) {
            connection.broken = true;
        }
        note!(deferred, WARN, %worker, problem, "worker broke the protocol");
        self.handle(now(), Event::Misbehaved { worker }, EventData::Nothing, shared, deferred);
    }
}
