//! The worker's main loop: receives tasks, runs them, and sends their outcomes.
//!
//! A task that waits in the link still belongs to the host, which may revoke it. So the worker
//! first *begins* the task in the table of task states, where only one of the two sides can win.
//! The state word stays *running* until the host uses it again: if the worker dies before it has
//! handed the outcome to the link, the task is interrupted.
//!
//! The outcome of each item of a chunk is sent before the next item starts, so that finished items
//! survive a crash. The host need not learn about each at once, so it is woken at the end of the
//! chunk, or now and then when items turn out to take long. In the latter case the worker also
//! returns the remaining items, so that they do not wait while another worker is idle.
//!
//! A task may emit items while it runs. Each is sent as an item of a chunk is, once the host has
//! granted it, and announced at once.
//!
//! A task that forks may return in both processes. The copy shares memory with the host, as the
//! original does, so it ends before it writes there: before it stores a result, and when the
//! function returns in it.

mod caller;
mod chunk;
mod emitter;
mod fetch;
mod offered;

use std::sync::Arc;
use std::time::Duration;

use brigade_sys::arena::LeftBlock;
use brigade_sys::clock;
use brigade_sys::executable::EntryPoint;
use brigade_sys::numbers::{Mark, Numbers};
use brigade_wire::link::{LinkError, LinkReceiver, LinkSender};
use brigade_wire::slots::{SlotTable, slot_tag};
use brigade_wire::{Finished, FinishedInline, FromWorker, Function, Item, Outcome, Run, ToWorker};

use crate::arenas::Arenas;
use crate::buffers::Lent;
use crate::error::LoopError;
use crate::forward;
use crate::functions::Functions;
use crate::memory_limit::MemoryLimit;
use crate::sections;
use caller::{Answer, Calls, FunctionCaller, Uncommon};
use chunk::Items;
use emitter::{ArenaOutlet, Emitter};

/// The buffer of a result is reused for the next one, unless it has grown beyond this.
const KEPT_BUFFER: usize = 1 << 20;

/// An outcome may be announced later while there is more work than this, in nanoseconds, if all
/// tasks are like the last one. It is the time of a wake-up on a small virtual machine. One task
/// that is left is no reason to wait: it would end before the host has sent others.
const WAKE_UP: u64 = 60_000;

/// Runs the tasks that arrive over a link, one after the other, on the thread that calls
/// [`run`](Self::run).
pub(crate) struct EventLoop<S, R> {
    receiver: R,
    reporter: Reporter<S>,
    slots: SlotTable,
    runner: TaskRunner,
    lent: Lent,
    memory_limit: MemoryLimit,
    turn: Turn,
}

/// The tasks that this process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// All of the worker's.
    All,
    /// One, because it is a copy of the worker.
    Copy,
    /// One, although it is the worker, which is replaced then.
    Last,
}

/// The reason why an event loop has ended in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoopEnd {
    /// The host has asked the worker to stop.
    Stopped,
    /// The process has run its only task, and leaves these blocks to the next copy.
    Done(Vec<LeftBlock>),
    /// The worker has to run the next task itself, and gets these blocks.
    Passed(Vec<LeftBlock>),
    /// The process has run its only task, and has asked the host to replace the worker.
    Worn,
}

/// Everything that is needed to run a task.
struct TaskRunner {
    functions: Arc<Functions>,
    /// The last function that was found by its offset, which the next task often calls, too.
    latest: Option<(u64, EntryPoint)>,
    arenas: Option<Arenas>,
    calls: Calls,
}

impl<S: LinkSender, R: LinkReceiver> EventLoop<S, R> {
    /// Returns a loop whose results may have up to `limit` bytes.
    pub(crate) fn new(
        sender: S,
        receiver: R,
        slots: SlotTable,
        arenas: Option<Arenas>,
        limit: usize,
        functions: Arc<Functions>,
        memory_limit: MemoryLimit,
    ) -> Self {
        let reporter = Reporter { sender, head: Vec::new() };
        let runner = TaskRunner { functions, latest: None, arenas, calls: Calls::new(limit) };
        let (lent, turn) = (Lent::default(), Turn::All);
        Self { receiver, reporter, slots, runner, lent, memory_limit, turn }
    }

    /// Sets how many tasks this process runs.
    pub(crate) fn set_turn(&mut self, turn: Turn) {
        self.turn = turn;
        // The host would look for an offer in the worker's process, and a copy ends after its task.
        self.runner.calls.may_offer = turn == Turn::All;
    }

    /// Goes on after a copy that has done its part and has left these blocks.
    pub(crate) fn resume(&mut self, left: &[LeftBlock]) -> Result<(), LoopError> {
        // A thread that the task has left may have opened one after its end.
        self.slots.set_section(None);
        if let Some(arenas) = &self.runner.arenas {
            let problem = "a copy of the worker has left impossible blocks";
            arenas.take_over(left).map_err(|_| LoopError::Receive(LinkError::Protocol(problem)))?;
        }
        self.receiver.resume().map_err(LoopError::Receive)?;
        self.reporter.sender.resume().map_err(LoopError::Send)
    }

    /// Returns what the next copy has to know, or `None` if it could not go on.
    #[cold]
    pub(crate) fn hand_over(&self) -> Option<Vec<LeftBlock>> {
        let arenas = self.runner.arenas.as_ref();
        let is_free = self.lent.is_empty();
        is_free.then(|| arenas.map_or(Some(Vec::new()), Arenas::hand_over)).flatten()
    }

    /// Runs tasks until the host asks the worker to stop, or one task if that is the
    /// [turn](Turn) of this process.
    pub(crate) fn run(&mut self) -> Result<LoopEnd, LoopError> {
        // The first task has the index 0.
        let mut last = u16::MAX;
        loop {
            // While the loop waits, it keeps the line of the next state word, which the host takes
            // to write it just before it sends the task.
            let slots = &self.slots;
            let before_look = &mut || slots.fetch_behind(last);
            let (message, found_at) = match self.receiver.receive_while(before_look) {
                Ok(found) => found,
                Err(LinkError::Closed) => return Err(LoopError::Closed),
                Err(error) => return Err(LoopError::Receive(error)),
            };
            self.slots.fetch_behind(last);
            let run = match ToWorker::decode(message).map_err(LoopError::Message)? {
                ToWorker::Run(run) => run,
                ToWorker::Stop => {
                    self.reporter.announce()?;
                    return Ok(LoopEnd::Stopped);
                }
                ToWorker::Yourself if self.turn == Turn::Copy => {
                    return Ok(self.hand_over().map_or(LoopEnd::Worn, LoopEnd::Passed));
                }
                ToWorker::Yourself => continue,
            };
            let Run { task, attempt, ring_index, .. } = run;
            last = ring_index;
            let tag = slot_tag(task, attempt);
            // A deadline must not count from before an interruption.
            let found_at = if run.limits.are_some() { None } else { found_at };
            let began = found_at.unwrap_or_else(clock::now);
            if !self.slots.begin(ring_index, tag, began) {
                self.reporter.send(&FromWorker::Skipped { task, attempt, ring_index })?;
                continue;
            }
            let answer = match run.chunk {
                None => {
                    let mut arrived = Some(Vec::new());
                    if run.has_segments {
                        self.runner.calls.has_sent_large = true;
                        let arenas = self.runner.arenas.as_ref();
                        arrived = self.reporter.fetch(arenas, self.turn != Turn::Copy, &run)?;
                    }
                    let mut emitter = Emitter::new(&mut self.reporter, &self.slots, ring_index);
                    let answer =
                        self.runner.run(&run, slots, arrived, &mut self.lent, &mut emitter);
                    emitter.finish()?;
                    answer
                }
                Some(chunk) => {
                    let items = Items { run: &run, chunk, began };
                    items.run(&self.slots, &mut self.reporter, &mut self.runner, &mut self.lent)?
                }
            };
            // A large value is stored, or is about to be offered.
            self.slots.leave();
            let end = FinishedInline { task, attempt, ring_index, run_time: 0, began, worn: false };
            if let Some(end) = self.end_task(end, answer)? {
                return Ok(end);
            }
        }
    }

    /// Sends the outcome of a task that has just ended. Returns the end of the loop, if it was the
    /// last one.
    #[inline]
    fn end_task(
        &mut self,
        mut end: FinishedInline,
        answer: Answer,
    ) -> Result<Option<LoopEnd>, LoopError> {
        let store = self.runner.calls.store(self.runner.arenas.as_ref());
        let uncommon = answer.map(|uncommon| store.outcome(*uncommon, &self.runner.calls.result));
        sections::end_of_task();
        forward::end_of_task();
        if !self.lent.is_empty() {
            self.lent.report(|message| self.reporter.send_unannounced(message))?;
        }
        let now = clock::now();
        end.run_time = now.as_nanos().saturating_sub(end.began.as_nanos());
        let left = if self.turn == Turn::Copy { self.hand_over() } else { None };
        end.worn = match self.turn {
            Turn::All => self.memory_limit.is_exceeded(),
            Turn::Copy | Turn::Last => left.is_none(),
        };
        match uncommon {
            None => self.reporter.send_end(&end, &self.runner.calls.result)?,
            Some(outcome) => {
                self.reporter.send_unannounced(&finished(&end, outcome))?;
                if let Some(offer) = self.runner.calls.offered.take() {
                    self.reporter.announce()?;
                    if !offer.wait() {
                        let other = self.runner.calls.refused(&store);
                        self.reporter.send_unannounced(&finished(&end, other))?;
                    }
                }
            }
        }
        if self.turn != Turn::All {
            self.reporter.announce()?;
            return Ok(Some(left.map_or(LoopEnd::Worn, LoopEnd::Done)));
        }
        let behind = self.receiver.behind();
        let left = end.run_time.saturating_mul(behind);
        if behind > 1 && left > WAKE_UP {
            let left = Duration::from_nanos(left);
            self.reporter.sender.announce_later(now, left).map_err(LoopError::Send)?;
        } else {
            self.reporter.announce()?;
        }
        self.runner.calls.leftover = Numbers::default();
        if !self.runner.calls.parts.is_empty() {
            self.runner.calls.parts = Vec::new();
        }
        if self.runner.calls.result.capacity() > KEPT_BUFFER {
            self.runner.calls.result = Vec::new();
        }
        Ok(None)
    }
}

impl TaskRunner {
    /// Runs a task that is no chunk.
    fn run<S: LinkSender>(
        &mut self,
        run: &Run<'_>,
        slots: &SlotTable,
        arrived: Option<Vec<(Mark, Numbers)>>,
        lent: &mut Lent,
        emitter: &mut Emitter<'_, S>,
    ) -> Answer {
        let entry = match self.find(&run.function) {
            Ok(entry) => entry,
            Err(reason) => return Some(Uncommon::boxed(Outcome::UnknownFunction(reason))),
        };
        let Self { arenas, calls, .. } = self;
        let wrong = |reason: &str| Some(Uncommon::boxed(Outcome::ArgumentCodec(reason.to_owned())));
        let Some(arrived) = arrived else {
            return wrong("the worker has no memory for the argument");
        };
        let Some(argument) = argument(arenas.as_ref(), run) else {
            return wrong("the location of the argument is out of bounds");
        };
        let store = calls.offering_store(arenas.as_ref());
        let mut put = |parts: &[&[u8]]| store.put_value(parts);
        let mut outlet = ArenaOutlet { emitter, store: &store };
        let mut caller =
            FunctionCaller::new(run, calls, &store, slots, &mut put, Some(&mut outlet));
        caller.set_arrived(arrived);
        caller.call(entry, run.task, argument, lent)
    }

    /// Returns the function to call, or the reason why it cannot be called.
    #[inline]
    fn find(&mut self, function: &Function<'_>) -> Result<EntryPoint, String> {
        match (function, self.latest) {
            (Function::Offset(offset), Some((latest, entry))) if *offset == latest => Ok(entry),
            _ => {
                let entry = self.functions.find(function)?;
                if let Function::Offset(offset) = function {
                    self.latest = Some((*offset, entry));
                }
                Ok(entry)
            }
        }
    }
}

/// Returns the encoded argument, which lies in the message or in the arena.
fn argument<'a>(arenas: Option<&'a Arenas>, run: &'a Run<'_>) -> Option<&'a [u8]> {
    let Some(location) = run.location else { return Some(run.argument) };
    let (offset, length) = location.in_memory()?;
    arenas?.arguments.as_ref()?.bytes(offset, length)
}

/// Returns the message of the end of a task whose value is not in the message.
fn finished<'a>(end: &FinishedInline, outcome: Outcome<'a>) -> FromWorker<'a> {
    let FinishedInline { task, attempt, ring_index, run_time, began, worn } = *end;
    let run_time = Duration::from_nanos(run_time);
    FromWorker::Finished(Finished { task, attempt, ring_index, run_time, began, worn, outcome })
}

/// Sends messages to the host.
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

    #[inline]
    fn send_unannounced(&mut self, message: &FromWorker<'_>) -> Result<(), LoopError> {
        self.head.clear();
        message.encode_head(&mut self.head);
        self.sender.send_unannounced(&self.head, message.payload()).map_err(LoopError::Send)
    }

    /// Sends the end of a task whose value is in the message.
    #[inline]
    fn send_end(&mut self, end: &FinishedInline, value: &[u8]) -> Result<(), LoopError> {
        self.sender.send_words(&end.words(), value).map_err(LoopError::Send)
    }

    #[inline]
    fn send_value_of_item(
        &mut self,
        ring_index: u16,
        index: u32,
        value: &[u8],
    ) -> Result<(), LoopError> {
        if self.sender.send_item(index, value).map_err(LoopError::Send)? {
            return Ok(());
        }
        let item = Item { ring_index, index, outcome: Outcome::Value(value) };
        self.send_unannounced(&FromWorker::Item(item))
    }

    fn announce(&mut self) -> Result<(), LoopError> {
        self.sender.announce().map_err(LoopError::Send)
    }
}

#[cfg(test)]
mod tests;
