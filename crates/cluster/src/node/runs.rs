//! The runs of tasks in the local pool.
//!
//! Single tasks are futures of the driver's thread. The items of a chunk go through `map`, which
//! blocks its caller and therefore has threads of its own.

mod chunks;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use brigade_codec::is_err;
use brigade_pool::{Encoded, Handle, Key, Pool, SubmitErrorKind, TaskError, TaskErrorKind};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc::UnboundedReceiver;

use self::chunks::{Chunk, Chunks};
use super::machine::{RunEnd, Token};
use crate::message::{Items, ItemsBuilder, RunSettings, TaskHead};
use crate::names::{Lane, Priority};

/// Lines of an error, with the calls of its stack, that a dead letter keeps.
const MAX_LINES: usize = 24;

/// A run that has ended, with its outcome unless it has not begun.
#[derive(Debug)]
pub(super) struct EndedRun {
    pub(super) token: Token,
    pub(super) end: RunEnd,
    pub(super) outcome: Option<RunOutcome>,
    /// Reason why the pool cannot run tasks any more.
    pub(super) failure: Option<String>,
}

impl EndedRun {
    pub(super) fn done(token: Token, outcome: RunOutcome) -> Self {
        Self { token, end: RunEnd::Done, outcome: Some(outcome), failure: None }
    }

    /// Returns the end of a run that has not begun, or that ended with its pool.
    pub(super) fn not_begun(token: Token, error: Option<&TaskError>) -> Self {
        let failure = error.and_then(|error| match error.kind() {
            TaskErrorKind::PoolBroken { reason } => Some(reason.clone()),
            _ => None,
        });
        Self { token, end: RunEnd::NotBegun, outcome: None, failure }
    }
}

/// The outcome of a run.
#[derive(Debug)]
pub(super) struct RunOutcome {
    pub(super) items: Items,
    pub(super) count: u32,
    pub(super) run_time: Duration,
}

/// The runs in the local pool.
pub(super) struct Runs {
    pool: Arc<Pool>,
    single: FuturesUnordered<Run>,
    chunks: Chunks,
    ended_chunks: UnboundedReceiver<EndedRun>,
}

impl Runs {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        let (chunks, ended_chunks) = Chunks::new(Arc::clone(&pool));
        Self { pool, single: FuturesUnordered::new(), chunks, ended_chunks }
    }

    /// Starts a run of a task from a lane, after a number of attempts elsewhere. Returns its end if
    /// it ended at once.
    pub(super) fn start(
        &mut self,
        token: Token,
        function: &Key<Encoded, Encoded>,
        head: &TaskHead,
        (lane, earlier_attempts): (&Lane, u32),
        mut items: Items,
    ) -> Option<EndedRun> {
        if head.is_chunk {
            self.chunks.start(Chunk::new(token, function.erase(), head, lane, items));
            return None;
        }
        let item = match items.next() {
            Some(Ok(item)) => item,
            Some(Err(error)) => return Some(failed(token, &codec_error(head, error.to_string()))),
            None => {
                return Some(failed(token, &codec_error(head, "it has no argument".to_owned())));
            }
        };
        let mut task = self.pool.task(function).priority(match lane.priority {
            Priority::High => 1,
            Priority::Normal => 0,
            Priority::Low => -1,
        });
        task = task.__earlier_attempts(earlier_attempts);
        for (resource, amount) in lane.class.requirements().resources() {
            task = task.needs(resource, amount);
        }
        if let Some(limit) = head.run.deadline {
            task = task.deadline(limit);
        }
        if let Some(limit) = head.run.soft_deadline {
            task = task.soft_deadline(limit);
        }
        if let Some(label) = &head.label {
            task = task.label(label.as_str());
        }
        match task.try_submit(Encoded::new(item.to_vec())) {
            Ok(handle) => {
                let RunSettings { retries_panics, retries_errors, .. } = head.run;
                let started = Instant::now();
                self.single.push(Run { token, handle, started, retries_panics, retries_errors });
                None
            }
            Err(error) => Some(match error.kind() {
                SubmitErrorKind::Codec { message } | SubmitErrorKind::Function { message } => {
                    failed(token, &codec_error(head, message.clone()))
                }
                SubmitErrorKind::PoolBroken { reason } => {
                    let failure = Some(reason.clone());
                    EndedRun { failure, ..EndedRun::not_begun(token, None) }
                }
                _ => EndedRun::not_begun(token, None),
            }),
        }
    }

    /// Takes a task back if it has not begun, or ends its worker. Its end is reported as others.
    pub(super) fn stop(&mut self, token: Token, kill: bool) {
        if let Some(run) = self.single.iter_mut().find(|run| run.token == token) {
            if kill {
                run.handle.kill();
            } else {
                run.handle.cancel();
            }
        } else {
            self.chunks.cancel(token);
        }
    }

    /// Returns the next run that has ended. May be dropped before it is ready.
    pub(super) async fn next(&mut self) -> EndedRun {
        loop {
            tokio::select! {
                Some(ended) = self.single.next() => return ended,
                Some(ended) = self.ended_chunks.recv() => return ended,
                else => std::future::pending().await,
            }
        }
    }
}

/// A single task in the local pool.
struct Run {
    token: Token,
    handle: Handle<Encoded>,
    started: Instant,
    retries_panics: bool,
    /// Set only if the value is a `Result`.
    retries_errors: bool,
}

impl Future for Run {
    type Output = EndedRun;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<EndedRun> {
        let this = &mut *self;
        Pin::new(&mut this.handle).poll(context).map(|result| {
            let run_time = this.started.elapsed();
            match result {
                Ok(value) => {
                    let mut outcome = ItemsBuilder::default();
                    outcome.push_value(value.as_slice());
                    let outcome = RunOutcome { items: outcome.finish(), count: 1, run_time };
                    let ended = EndedRun::done(this.token, outcome);
                    if this.retries_errors && is_err(value.as_slice()) {
                        let end = RunEnd::Failed("its function returned an error".to_owned());
                        return EndedRun { end, ..ended };
                    }
                    ended
                }
                Err(error) if this.retries_panics && error.is_panic() => {
                    let end = RunEnd::Failed(described(&error));
                    EndedRun { end, ..failed(this.token, &error) }
                }
                Err(error) => failed(this.token, &error),
            }
        })
    }
}

/// Returns the end of a run without a value.
fn failed(token: Token, error: &TaskError) -> EndedRun {
    if has_no_outcome(error) {
        return EndedRun::not_begun(token, Some(error));
    }
    // As in a local pool, where `retries` apply to all three.
    let has_died = error.is_worker_death() || error.is_deadline() || error.is_limit();
    let end = if has_died { RunEnd::Died(described(error)) } else { RunEnd::Done };
    let run_time = error.elapsed().unwrap_or_default();
    let outcome = RunOutcome { items: Items::of_error(error, 1), count: 1, run_time };
    EndedRun { end, ..EndedRun::done(token, outcome) }
}

/// Returns `true` if the pool has ended, or was made to: another node should run the task.
fn has_no_outcome(error: &TaskError) -> bool {
    use TaskErrorKind::{Cancelled, Killed, PoolBroken, PoolClosed};
    matches!(error.kind(), Cancelled | Killed | PoolBroken { .. } | PoolClosed)
}

/// Returns the error with the first calls of its stack.
fn described(error: &TaskError) -> String {
    let text = format!("{error:#}");
    text.lines().take(MAX_LINES).collect::<Vec<_>>().join("\n")
}

fn codec_error(head: &TaskHead, message: String) -> TaskError {
    TaskError::of(TaskErrorKind::Codec { message }, head.label.as_deref(), 1, None)
}
