//! Reads the next message of a worker.

use std::sync::Arc;

use brigade_scheduler::{Event, Scheduler};
use brigade_sys::arena::ResultView;
use brigade_wire::link::ring::HostEnd;
use brigade_wire::{FinishedInline, FromWorker, Outcome, WorkerId};

use crate::buffers::{Kept, Reachable};
use crate::cell::TaskCell;
use crate::drive::deferred::Deferred;
use crate::drive::large::{Large, LargeOffer, Want};
use crate::drive::outcome::{EventData, decode_segmented, finish_chunk, finished_event, take_item};
use crate::drive::shared::Shared;

/// The consequence of a message.
pub(super) enum Next {
    /// A task without anything rare has ended, and its value is in the message.
    Inline(FinishedInline),
    /// A value or an argument has to be copied from the worker's memory or to it.
    Large(Box<Large>),
    Other(Box<(Event<TaskCell>, EventData)>),
}

/// Maximum number of lists of buffers between two outcomes: the core is locked while they are read.
const MAX_LISTS: u32 = 1 << 16;
const TOO_MANY_LISTS: &str = "sent too many lists of shared buffers";

/// Copies the next outcome out of the ring, after sending on what had to wait for room. Outcomes of
/// items concern only their chunk or those that take them, so they are only counted.
pub(super) fn next_event(
    worker: WorkerId,
    end: &mut HostEnd,
    (results, kept, shared): (Option<&Arc<ResultView>>, &mut Kept, &Shared),
    scheduler: &Scheduler<TaskCell>,
    items: &mut usize,
    deferred: &mut Deferred,
) -> Result<Option<Next>, String> {
    end.pump().map_err(|error| error.to_string())?;
    let ring = &mut end.consumer;
    let mut lists = 0..MAX_LISTS;
    loop {
        if !ring.find_published().map_err(|error| error.to_string())? {
            return Ok(None);
        }
        let due = scheduler.due(worker);
        let taken = due.and_then(|task| task.with_chunk_progress(|chunk| chunk.take_items(ring)));
        if let Some(taken) = taken.filter(|taken| *taken > 0) {
            *items += taken as usize;
            continue;
        }
        if !ring.advance().map_err(|error| error.to_string())? {
            return Ok(None);
        }
        if due.is_some_and(|task| task.is_ordinary())
            && let Some(finished) = FinishedInline::decode(ring.message())
        {
            return Ok(Some(Next::Inline(finished)));
        }
        let reachable = Reachable { results, kept, copies: shared.arguments() };
        let next = match FromWorker::decode(ring.message()).map_err(|error| error.to_string())? {
            FromWorker::Item(item) => {
                take_item(due, item, reachable, deferred)?;
                *items += 1;
                continue;
            }
            FromWorker::Finished(finished) => {
                if let Outcome::Segmented(segmented) = &finished.outcome
                    && let Some(block) = segmented.offer
                {
                    let value = decode_segmented(segmented, due, reachable)?;
                    let limit = shared.config.supervisor.message_limit;
                    let is_task = due.is_some_and(|task| !task.is_chunk());
                    let offer = LargeOffer::new(block, value, &finished, is_task, results, limit)?;
                    Next::Large(Box::new(Large::Value(offer)))
                } else {
                    let end = finish_chunk(worker, due, &finished)?;
                    Next::Other(Box::new(finished_event(worker, finished, end, due, reachable)?))
                }
            }
            FromWorker::Wants(wanted) => {
                let kept = due.and_then(TaskCell::kept_parts);
                Next::Large(Box::new(Large::Argument(Want::new(&wanted, kept, results)?)))
            }
            FromWorker::Keeps(buffers) => {
                kept.keep(buffers, |key| due?.buffer(key))?;
                lists.next().ok_or(TOO_MANY_LISTS)?;
                continue;
            }
            FromWorker::Releases(buffers) => {
                kept.release(buffers)?;
                lists.next().ok_or(TOO_MANY_LISTS)?;
                continue;
            }
            FromWorker::Skipped { task, attempt, .. } => {
                let skipped = Event::Skipped { worker, task, attempt };
                Next::Other(Box::new((skipped, EventData::Nothing)))
            }
        };
        return Ok(Some(next));
    }
}
