//! All decisions of a stream, without locks, clocks and threads.
//!
//! An input *waits* in the stream until it may be *submitted* to the pool. When the pool has
//! *finished* it, it is *ready* to be taken, in the order of completion or of the ids. Each id is
//! in one of these states until it is taken or dropped, so it is accounted for exactly once.
//!
//! The pool holds a bounded number of a stream's tasks: `workers + output`, those included that are
//! ready and not taken. So a stream whose consumer is slow comes to rest, and leaves the workers to
//! others.
//!
//! A reset or the end of the stream takes all ids out. The driver cancels their tasks; what the
//! pool says later of an id that is not there is ignored. No id is used twice.

#[cfg(not(loom))]
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use brigade_sys::clock::Monotonic;

use super::error::PutErrorKind;
use super::report::StreamReport;

/// The limits of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamLimits {
    /// Number of inputs per worker that may wait.
    pub(super) per_worker: usize,
    /// Number of tasks that may be with the pool beyond one per worker.
    pub(super) output: usize,
    pub(super) ordered: bool,
}

/// The workers that a stream may use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) workers: usize,
    /// `true` if the pool has more workers, so that the number of unfinished tasks must be limited.
    pub(super) is_part: bool,
}

/// The state of a stream whose tasks are represented by `T`.
#[derive(Debug)]
pub(super) struct Machine<T> {
    limits: StreamLimits,
    share: Share,
    /// The id of the next input.
    next_id: u64,
    /// The number of times that ids were dropped.
    epoch: u64,
    input: Input,
    waiting: VecDeque<(u64, T)>,
    submitted: BTreeMap<u64, T>,
    /// In the order of delivery.
    ready: VecDeque<(u64, T)>,
    /// In an ordered stream, the id of the next item.
    next_item: u64,
    /// The time since when a consumer waits in vain.
    quiet_since: Option<Monotonic>,
    /// The time of the next stall, if one was reported since then.
    next_stall: Option<Monotonic>,
    counters: StreamReport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Open,
    /// There are no more inputs; the items of those that were put are delivered.
    Finished,
    /// Nothing is delivered any more.
    Closed,
}

/// The way in which a task ended, as far as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskEnd {
    Value,
    Failure,
    /// The worker died.
    Lost,
}

/// The state of a stream that has had no item for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stall {
    pub(super) quiet: Duration,
    pub(super) waiting: usize,
    pub(super) submitted: usize,
    /// The lowest id of a task that is with the pool.
    pub(super) oldest: Option<u64>,
}

impl<T> Machine<T> {
    pub(super) fn new(limits: StreamLimits, share: Share) -> Self {
        Self {
            limits,
            share,
            next_id: 0,
            epoch: 0,
            input: Input::Open,
            waiting: VecDeque::new(),
            submitted: BTreeMap::new(),
            ready: VecDeque::new(),
            next_item: 0,
            quiet_since: None,
            next_stall: None,
            counters: StreamReport::default(),
        }
    }

    /// Sets the workers that the stream may use, which changes when the pool is resized.
    pub(super) fn set_share(&mut self, share: Share) {
        self.share = share;
    }

    /// Returns the id of the next input.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Adds an input and returns its id, or returns it with the reason why it is refused.
    pub(super) fn put(&mut self, task: T, now: Monotonic) -> Result<u64, (PutErrorKind, T)> {
        if let Err(kind) = self.accepts() {
            return Err((kind, task));
        }
        if self.pending() == 0 {
            // A consumer that waited had nothing to wait for.
            (self.quiet_since, self.next_stall) = (self.quiet_since.map(|_| now), None);
        }
        let id = self.next_id;
        self.next_id += 1;
        self.waiting.push_back((id, task));
        self.counters.put += 1;
        self.counters.most_pending = self.counters.most_pending.max(self.pending());
        Ok(id)
    }

    /// Returns the reason why an input would be refused.
    pub(super) fn accepts(&self) -> Result<(), PutErrorKind> {
        match self.input {
            Input::Open if self.is_full() => Err(PutErrorKind::Full),
            Input::Open => Ok(()),
            Input::Finished | Input::Closed => Err(PutErrorKind::Finished),
        }
    }

    /// Moves the next input to the pool, if it may have another task of this stream.
    pub(super) fn submit_next(&mut self) -> Option<(u64, &T)> {
        let Share { workers, is_part } = self.share;
        let untaken = self.submitted.len() + self.ready.len();
        if untaken >= self.capacity() || (is_part && self.submitted.len() >= workers) {
            return None;
        }
        let (id, task) = self.waiting.pop_front()?;
        let task = &*self.submitted.entry(id).or_insert(task);
        Some((id, task))
    }

    /// Makes a task ready that the pool has finished, or that has emitted an item.
    pub(super) fn finished(&mut self, id: u64) {
        let Some(task) = self.submitted.remove(&id) else { return };
        let at = if self.limits.ordered {
            self.ready.partition_point(|(other, _)| *other < id)
        } else {
            self.ready.len()
        };
        self.ready.insert(at, (id, task));
        self.counters.most_finished = self.counters.most_finished.max(self.ready.len());
    }

    /// Makes a task ready in another form.
    pub(super) fn finished_as(&mut self, id: u64, task: T) -> Option<T> {
        match self.submitted.get_mut(&id) {
            Some(place) => *place = task,
            None => return Some(task),
        }
        self.finished(id);
        None
    }

    /// Returns the task that [`take`](Self::take) would return.
    pub(super) fn front(&self) -> Option<(u64, &T)> {
        let (id, task) = self.ready.front().filter(|_| self.is_ready())?;
        Some((*id, task))
    }

    /// Ends the turn of the task in front, which has emitted items and remains. It gets the next
    /// turn after all that are ready, if it `is_ready` itself, otherwise once it is `finished`
    /// again.
    pub(super) fn turn(&mut self, is_ready: bool) {
        (self.quiet_since, self.next_stall) = (None, None);
        let Some((id, task)) = self.ready.pop_front() else { return };
        self.submitted.insert(id, task);
        if is_ready {
            self.finished(id);
        }
    }

    /// Takes the next item, which is counted as delivered.
    pub(super) fn take(&mut self) -> Option<(u64, T)> {
        if !self.is_ready() {
            return None;
        }
        (self.quiet_since, self.next_stall) = (None, None);
        self.counters.delivered += 1;
        self.next_item += 1;
        self.ready.pop_front()
    }

    /// Counts the end of a task that was taken in `epoch`. Returns `false` if a reset came before,
    /// so that it must not be delivered.
    pub(super) fn deliver(&mut self, epoch: u64, ended: TaskEnd) -> bool {
        if epoch != self.epoch {
            self.counters.delivered -= 1;
            self.counters.dropped += 1;
            return false;
        }
        self.counters.failed += u64::from(ended != TaskEnd::Value);
        self.counters.lost += u64::from(ended == TaskEnd::Lost);
        true
    }

    /// Accepts no more inputs.
    pub(super) fn finish(&mut self) {
        if self.input == Input::Open {
            self.input = Input::Finished;
        }
    }

    /// Drops everything that is pending. Returns the tasks, those first that are with the pool.
    pub(super) fn reset(&mut self) -> (Vec<T>, Vec<T>) {
        self.epoch += 1;
        self.next_item = self.next_id;
        (self.quiet_since, self.next_stall) = (None, None);
        let submitted: Vec<T> = std::mem::take(&mut self.submitted).into_values().collect();
        let others = self.waiting.drain(..).chain(self.ready.drain(..));
        let others: Vec<T> = others.map(|(_, task)| task).collect();
        self.counters.dropped += (submitted.len() + others.len()) as u64;
        (submitted, others)
    }

    /// Ends the stream, and drops everything that is pending as `reset` does.
    pub(super) fn close(&mut self) -> (Vec<T>, Vec<T>) {
        self.input = Input::Closed;
        self.reset()
    }

    /// Records that a consumer waits. Returns the stall, if there is one, and the time at which to
    /// look again.
    pub(super) fn wait(
        &mut self,
        now: Monotonic,
        after: Duration,
    ) -> (Option<Stall>, Option<Monotonic>) {
        let since = *self.quiet_since.get_or_insert(now);
        let due = self.next_stall.or_else(|| since.checked_add(after));
        if due.is_none_or(|due| due > now) {
            return (None, due);
        }
        self.next_stall = now.checked_add(after);
        let stall = Stall {
            quiet: now.saturating_since(since),
            waiting: self.waiting.len(),
            submitted: self.submitted.len(),
            oldest: self.submitted.keys().next().copied(),
        };
        ((self.pending() > 0).then_some(stall), self.next_stall)
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns `true` if an item can be taken.
    pub(super) fn is_ready(&self) -> bool {
        let next = self.ready.front();
        next.is_some_and(|(id, _)| !self.limits.ordered || *id == self.next_item)
    }

    /// Returns `true` if no item will come any more.
    pub(super) fn is_over(&self) -> bool {
        self.input != Input::Open && self.pending() == 0
    }

    pub(super) fn is_full(&self) -> bool {
        let waiting = self.limits.per_worker.saturating_mul(self.share.workers);
        self.pending() >= self.capacity().saturating_add(waiting)
    }

    /// Returns the number of inputs whose items were not taken.
    pub(super) fn pending(&self) -> usize {
        self.waiting.len() + self.submitted.len() + self.ready.len()
    }

    pub(super) fn report(&self) -> StreamReport {
        StreamReport { pending: self.pending() as u64, ..self.counters }
    }

    /// Returns the number of tasks that may be with the pool or ready.
    fn capacity(&self) -> usize {
        self.share.workers.saturating_add(self.limits.output).max(1)
    }

    /// Checks all invariants.
    #[cfg(all(test, not(loom)))]
    pub(super) fn sanity_check(&self) {
        let counters = self.report();
        let taken = counters.delivered + counters.dropped + counters.pending;
        assert_eq!(counters.put, taken, "an id is lost");
        assert_eq!(counters.put, self.next_id);
        assert!(counters.lost <= counters.failed && counters.failed <= counters.delivered);
        let ids = self.waiting.iter().map(|(id, _)| id);
        let ids = ids.chain(self.submitted.keys()).chain(self.ready.iter().map(|(id, _)| id));
        let unique: std::collections::HashSet<_> = ids.clone().collect();
        assert_eq!(unique.len(), self.pending(), "an id is in two states");
        assert!(ids.clone().all(|id| *id < self.next_id));
        assert!(self.waiting.iter().is_sorted_by_key(|(id, _)| id));
        if self.limits.ordered {
            assert!(self.ready.iter().is_sorted_by_key(|(id, _)| id));
            assert!(ids.clone().all(|id| *id >= self.next_item), "an id was passed over");
        }
        assert!(self.input != Input::Closed || self.pending() == 0);
    }
}
