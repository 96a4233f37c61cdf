//! What a worker does all its life: receive, run, report.
//!
//! A task that waits in the link still belongs to the host, which may revoke it. So the worker first *begins* it in
//! the table of task states; only one of the two sides gets its way there. The slot says
//! *running* until the host uses it again: a death before the outcome was handed to the link is a death of that task.
//!
//! The items of a chunk are answered one by one, each before the next begins: what was done survives a death. The host
//! need not hear of each at once, so it is woken at the chunk's end, or when items turn out to take long. Then the
//! rest of the chunk goes back too, so that it does not wait behind them while another worker has nothing to do.

use brigade_sys::clock::{self, Monotonic};
use brigade_sys::executable::{EntryError, EntryPoint, FunctionOffset, Invocation};
use brigade_wire::link::{LinkError, LinkReceiver, LinkSender};
use brigade_wire::slots::{SlotTable, slot_tag};
use brigade_wire::{
    Chunk, Finished, FromWorker, Function, Item, Outcome, Run, TaskId, ToWorker, items,
};

use crate::bounded::bounded;
use crate::context;
use crate::error::LoopError;
use crate::panic_capture;

/// A result's buffer is kept for the next result, unless it has grown beyond this.
const KEPT_BUFFER: usize = 1 << 20;

/// What a type's own `serde` code says about a failure is cut beyond this, so that every link carries it.
const REASON_LIMIT: usize = 16 * 1024;

/// Runs the tasks that come over a link, one after the other, on the thread that calls [`run`](Self::run).
pub(crate) struct EventLoop<S, R> {
    receiver: R,
    reporter: Reporter<S>,
    slots: SlotTable,
    limit: usize,
}

impl<S: LinkSender, R: LinkReceiver> EventLoop<S, R> {
    /// A loop whose results may have `limit` bytes each.
    pub(crate) fn new(sender: S, receiver: R, slots: SlotTable, limit: usize) -> Self {
        let reporter = Reporter { sender, head: Vec::new() };
        Self { receiver, reporter, slots, limit }
    }

    /// Runs tasks until the host says stop.
    pub(crate) fn run(mut self) -> Result<(), LoopError> {
        let mut result = Vec::new();
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
                None => run_task(&run, task, run.argument, &mut result, self.limit),
                Some(chunk) => {
                    let items = Items { run: &run, chunk, began, limit: self.limit };
                    items.run(&self.slots, &mut self.reporter, &mut result)?
                }
            };
            let run_time = clock::now().saturating_since(began);
            let finished = Finished { task, attempt, slot, run_time, outcome };
            self.reporter.send(&FromWorker::Finished(finished))?;
            if result.capacity() > KEPT_BUFFER {
                result = Vec::new();
            }
        }
    }
}

/// A chunk that has begun.
struct Items<'a> {
    run: &'a Run<'a>,
    chunk: Chunk,
    began: Monotonic,
    limit: usize,
}

impl Items<'_> {
    /// Runs and answers the items in their order, until the budget is used up; how the chunk ends.
    fn run<S: LinkSender>(
        &self,
        slots: &SlotTable,
        reporter: &mut Reporter<S>,
        result: &mut Vec<u8>,
    ) -> Result<Outcome<'static>, LoopError> {
        let Run { task, slot, argument, .. } = *self.run;
        let mut items = argument;
        let mut tick = clock::last_tick();
        for index in 0..self.chunk.items {
            let Some(item) = items::take(&mut items).and_then(Result::ok) else {
                let reason = format!("the chunk ends before its item {index}");
                return Ok(Outcome::ArgumentCodec(reason));
            };
            slots.begin_item(slot, u64::from(index) + 1);
            let id = TaskId::new(task.get() + u64::from(index));
            let outcome = run_task(self.run, id, item, result, self.limit);
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

/// Runs one task, or item. Whatever it does short of ending the process becomes its outcome.
fn run_task<'a>(
    run: &Run<'_>,
    id: TaskId,
    argument: &[u8],
    result: &'a mut Vec<u8>,
    limit: usize,
) -> Outcome<'a> {
    let entry = match entry_point(&run.function) {
        Ok(entry) => entry,
        Err(reason) => return Outcome::UnknownFunction(reason),
    };
    result.clear();
    let current = context::enter(id, run.attempt);
    let answer = panic_capture::run(|| {
        let mut invocation = Invocation { argument, result: &mut *result, limit };
        entry(&mut invocation)
    });
    drop(current);
    match answer {
        Ok(Ok(())) => Outcome::Value(result),
        Ok(Err(EntryError::Argument(reason))) => {
            Outcome::ArgumentCodec(bounded(&reason, REASON_LIMIT))
        }
        Ok(Err(EntryError::Result(reason))) => Outcome::ResultCodec(bounded(&reason, REASON_LIMIT)),
        Err(report) => Outcome::Panicked(Box::new(report)),
    }
}

fn entry_point(function: &Function<'_>) -> Result<EntryPoint, String> {
    match function {
        Function::Offset(offset) => {
            FunctionOffset::from_raw(*offset).resolve().map_err(|error| error.to_string())
        }
        Function::Name(name) => {
            let why = "the worker has registered no function by name";
            Err(bounded(&format_args!("unknown function {name:?}: {why}"), REASON_LIMIT))
        }
    }
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
