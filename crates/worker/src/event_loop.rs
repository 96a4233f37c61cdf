//! What a worker does all its life: receive, run, report.
//!
//! A task that waits in the link still belongs to the host, which may revoke it. So the worker first *begins* it in
//! the table of task states; only one of the two sides gets its way there. The slot says
//! *running* until the host uses it again: a death before the outcome was handed to the link is a death of that task.
//!
//! The items of a chunk are answered one by one, each before the next begins: what was done survives a death. The host
//! need not hear of each at once, so it is woken at the chunk's end, or when items turn out to take long. Then the
//! rest of the chunk goes back too, so that it does not wait behind them while another worker has nothing to do.
//!
//! A task that forks may return in both processes. The copy has the memory that the original shares with the host, so it
//! ends before it writes there: before it places a result, and when it comes back from the function.

use std::ops::Range;
use std::sync::Arc;

use brigade_sys::arena::{ArgumentView, ResultArena};
use brigade_sys::clock::{self, Monotonic};
use brigade_sys::executable::{EntryError, Invocation};
use brigade_sys::fork::Origin;
use brigade_wire::link::{LinkError, LinkReceiver, LinkSender, PLACE_FROM};
use brigade_wire::slots::{SlotTable, slot_tag};
use brigade_wire::{
    Chunk, Finished, FromWorker, Item, Outcome, Place, Run, TaskId, ToWorker, items,
};

use crate::bounded::bounded;
use crate::context;
use crate::error::LoopError;
use crate::functions::Functions;
use crate::panic_capture;
use crate::sections;
use crate::weight::Weight;

/// A result's buffer is kept for the next result, unless it has grown beyond this.
const KEPT_BUFFER: usize = 1 << 20;

/// What a type's own `serde` code says about a failure is cut beyond this, so that every link carries it.
const REASON_LIMIT: usize = 16 * 1024;

/// Runs the tasks that come over a link, one after the other, on the thread that calls [`run`](Self::run).
pub(crate) struct EventLoop<S, R> {
    receiver: R,
    reporter: Reporter<S>,
    slots: SlotTable,
    runner: Runner,
    weight: Weight,
}

/// The way to and from the arenas in which large payloads lie.
#[derive(Debug)]
pub(crate) struct Arenas {
    pub(crate) arguments: ArgumentView,
    pub(crate) results: ResultArena,
}

/// What it takes to run a task.
struct Runner {
    functions: Arc<Functions>,
    arenas: Option<Arenas>,
    result: Vec<u8>,
    /// The most bytes of a result.
    limit: usize,
    /// The worker's process.
    origin: Origin,
}

impl<S: LinkSender, R: LinkReceiver> EventLoop<S, R> {
    /// A loop whose results may have `limit` bytes each.
    pub(crate) fn new(
        sender: S,
        receiver: R,
        slots: SlotTable,
        arenas: Option<Arenas>,
        limit: usize,
        functions: Arc<Functions>,
    ) -> Self {
        let reporter = Reporter { sender, head: Vec::new() };
        let runner =
            Runner { functions, arenas, result: Vec::new(), limit, origin: Origin::here() };
        Self { receiver, reporter, slots, runner, weight: Weight::limited_to(context::max_rss()) }
    }

    /// Runs tasks until the host says stop.
    pub(crate) fn run(mut self) -> Result<(), LoopError> {
        loop {
            let message = match self.receiver.receive() {
                Ok(message) => message,
                Err(LinkError::Closed) => return Err(LoopError::Closed),
                Err(error) => return Err(LoopError::Receive(error)),
            };
            let run = match ToWorker::decode(message).map_err(LoopError::Message)? {
                ToWorker::Run(run) => run,
                ToWorker::Stop => return Ok(()),
            };
            let Run { task, attempt, slot, .. } = run;
            let tag = slot_tag(task, attempt);
            let began = clock::now();
            if !self.slots.begin(slot, tag, began) {
                self.reporter.send(&FromWorker::Skipped { task, attempt, slot })?;
                continue;
            }
            let outcome = match run.chunk {
                None => self.runner.run(&run, task, None),
                Some(chunk) => {
                    let items = Items { run: &run, chunk, began };
                    items.run(&self.slots, &mut self.reporter, &mut self.runner)?
                }
            };
            sections::end_of_task();
            let run_time = clock::now().saturating_since(began);
            let worn = self.weight.is_too_much();
            let finished = Finished { task, attempt, slot, run_time, worn, outcome };
            self.reporter.send(&FromWorker::Finished(finished))?;
            if self.runner.result.capacity() > KEPT_BUFFER {
                self.runner.result = Vec::new();
            }
        }
    }
}

/// A chunk that has begun.
struct Items<'a> {
    run: &'a Run<'a>,
    chunk: Chunk,
    began: Monotonic,
}

impl Items<'_> {
    /// Runs and answers the items in their order, until the budget is used up; how the chunk ends.
    fn run<S: LinkSender>(
        &self,
        slots: &SlotTable,
        reporter: &mut Reporter<S>,
        runner: &mut Runner,
    ) -> Result<Outcome<'static>, LoopError> {
        let Run { task, slot, .. } = *self.run;
        let mut taken = 0;
        let mut tick = clock::last_tick();
        for index in 0..self.chunk.items {
            let Some(item) = runner.item(self.run, &mut taken) else {
                let reason = format!("the chunk ends before its item {index}");
                return Ok(Outcome::ArgumentCodec(reason));
            };
            slots.begin_item(slot, u64::from(index) + 1);
            let id = TaskId::new(task.get() + u64::from(index));
            let outcome = runner.run(self.run, id, Some(item));
            sections::end_of_item();
            reporter.send_unannounced(&FromWorker::Item(Item { slot, index, outcome }))?;
            // The exact time costs more than a short item.
            if clock::last_tick() != tick {
                tick = clock::last_tick();
                reporter.announce()?;
                if clock::now().saturating_since(self.began) >= self.chunk.budget {
                    break;
                }
            }
        }
        Ok(Outcome::Value(&[]))
    }
}

impl Runner {
    /// Where the next item of a chunk lies in the argument, behind what was taken.
    fn item(&self, run: &Run<'_>, taken: &mut usize) -> Option<Range<usize>> {
        let argument = argument(self.arenas.as_ref(), run)?;
        let mut rest = argument.get(*taken..)?;
        let item = items::take(&mut rest)?.ok()?;
        *taken = argument.len() - rest.len();
        Some(*taken - item.len()..*taken)
    }

    /// Runs one task, or an item of it. Whatever it does short of ending the process becomes its outcome.
    fn run(&mut self, run: &Run<'_>, id: TaskId, item: Option<Range<usize>>) -> Outcome<'_> {
        let entry = match self.functions.find(&run.function) {
            Ok(entry) => entry,
            Err(reason) => return Outcome::UnknownFunction(reason),
        };
        let Self { arenas, result, limit, origin, .. } = self;
        let (view, mut results) = match arenas {
            Some(Arenas { arguments, results }) => (Some(&*arguments), Some(results)),
            None => (None, None),
        };
        let Some(argument) = argument_in(view, run).and_then(|argument| match item {
            Some(item) => argument.get(item),
            None => Some(argument),
        }) else {
            return Outcome::ArgumentCodec("the argument is not where it should be".to_owned());
        };
        result.clear();
        let mut placed = None;
        let current = context::enter(id, run.attempt, run.limits);
        let answer = panic_capture::run(|| {
            let mut put = |parts: &[&[u8]]| {
                origin.end_copy();
                placed = results.as_mut().and_then(|results| results.put(parts));
                placed.is_some()
            };
            let mut invocation =
                Invocation { argument, result: &mut *result, limit: *limit, place: Some(&mut put) };
            entry(&mut invocation)
        });
        origin.end_copy();
        drop(current);
        if run.limits.are_some() {
            context::leave_limits();
        }
        match answer {
            Ok(Ok(())) => {
                if placed.is_none() && result.len() >= PLACE_FROM {
                    placed = results.and_then(|results| results.put(&[result]));
                }
                match placed {
                    Some((offset, length)) => {
                        Outcome::Placed(Place { offset: offset as u64, length: length as u64 })
                    }
                    None => Outcome::Value(result),
                }
            }
            Ok(Err(EntryError::Argument(reason))) => {
                Outcome::ArgumentCodec(bounded(&reason, REASON_LIMIT))
            }
            Ok(Err(EntryError::Result(reason))) => {
                Outcome::ResultCodec(bounded(&reason, REASON_LIMIT))
            }
            Err(report) => Outcome::Panicked(Box::new(report)),
        }
    }
}

fn argument<'a>(arenas: Option<&'a Arenas>, run: &'a Run<'_>) -> Option<&'a [u8]> {
    argument_in(arenas.map(|arenas| &arenas.arguments), run)
}

/// The encoded argument, in the message or in the arena.
fn argument_in<'a>(view: Option<&'a ArgumentView>, run: &'a Run<'_>) -> Option<&'a [u8]> {
    let Some(Place { offset, length }) = run.placed else { return Some(run.argument) };
    view?.bytes(usize::try_from(offset).ok()?, usize::try_from(length).ok()?)
}

/// The way back to the host.
struct Reporter<S> {
    sender: S,
    head: Vec<u8>,
}

impl<S: LinkSender> Reporter<S> {
    fn send(&mut self, message: &FromWorker<'_>) -> Result<(), LoopError> {
        self.head.clear();
        message.encode_head(&mut self.head);
        self.sender.send(&self.head, message.payload()).map_err(LoopError::Send)
    }

    fn send_unannounced(&mut self, message: &FromWorker<'_>) -> Result<(), LoopError> {
        self.head.clear();
        message.encode_head(&mut self.head);
        self.sender.send_unannounced(&self.head, message.payload()).map_err(LoopError::Send)
    }

    fn announce(&mut self) -> Result<(), LoopError> {
        self.sender.announce().map_err(LoopError::Send)
    }
}

#[cfg(test)]
mod tests;
