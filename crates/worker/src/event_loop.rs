//! What a worker does all its life: receive, run, report.
//!
//! A task that waits in the link still belongs to the host, which may revoke it. So the worker first *begins* it in
//! the table of task states; only one of the two sides gets its way there. The slot says
//! *running* until the host uses it again: a death before the outcome was handed to the link is a death of that task.

use brigade_sys::clock;
use brigade_sys::executable::{EntryError, EntryPoint, FunctionOffset, Invocation};
use brigade_wire::link::{LinkError, LinkReceiver, LinkSender};
use brigade_wire::slots::{SlotTable, slot_tag};
use brigade_wire::{Finished, FromWorker, Function, Outcome, Run, ToWorker};

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
            let outcome = run_task(&run, &mut result, self.limit);
            let run_time = clock::now().saturating_since(began);
            let finished = Finished { task, attempt, slot, run_time, outcome };
            self.reporter.send(&FromWorker::Finished(finished))?;
            if result.capacity() > KEPT_BUFFER {
                result = Vec::new();
            }
        }
    }
}

/// Runs one task. Whatever it does short of ending the process becomes its outcome.
fn run_task<'a>(run: &Run<'_>, result: &'a mut Vec<u8>, limit: usize) -> Outcome<'a> {
    let entry = match entry_point(&run.function) {
        Ok(entry) => entry,
        Err(reason) => return Outcome::UnknownFunction(reason),
    };
    result.clear();
    let current = context::enter(run.task, run.attempt);
    let answer = panic_capture::run(|| {
        let mut invocation = Invocation { argument: run.argument, result: &mut *result, limit };
        entry(&mut invocation)
    });
    drop(current);
    match answer {
        Ok(Ok(())) => Outcome::Value(result),
        Ok(Err(EntryError::Argument(reason))) => {
            Outcome::ArgumentCodec(bounded(&reason, REASON_LIMIT))
        }
        Ok(Err(EntryError::Result(reason))) => Outcome::ResultCodec(bounded(&reason, REASON_LIMIT)),
        Err(report) => Outcome::Panicked(report),
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
}

#[cfg(test)]
mod tests;
