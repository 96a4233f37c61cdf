//! The operations of one thread on a pool.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brigade::{Handle, Pool, PoolError, SubmitErrorKind, TaskError};
use brigade_testkit::Random;

use super::behavior::{Behavior, Order, Reply, Sent, perform};
use super::chaos::Books;
use super::inside::wait_with_blocking_waker;
use super::plan::{Mix, happens};
use crate::watch::Watch;

/// Maximum number of open tasks of a submitter in a run with very many tasks.
const MAX_OPEN: usize = 300;

/// The state of one submitter at its end.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Tasks that nobody has waited for yet.
    pub(super) open: Vec<(Sent, Handle<Reply>)>,
    /// Tasks with their outcomes.
    pub(super) closed: Vec<(Sent, Result<Reply, TaskError>)>,
    /// Tasks whose handles were dropped, with unknown outcomes.
    pub(super) dropped: Vec<Sent>,
    /// Submissions that were refused because the queue was full.
    pub(super) refused: u64,
}

/// The tools of a submitter.
pub(super) struct Submitter<'a> {
    pub(super) pool: &'a Pool,
    pub(super) random: Random,
    pub(super) operations: u64,
    pub(super) mix: Mix,
    /// Books for settling accounts on the way, if there are too many tasks to keep.
    pub(super) books: Option<&'a Books<'a>>,
    pub(super) may_hang: bool,
    /// Maximum number of workers for `resize`, if their number may change.
    pub(super) resizes: Option<usize>,
    /// Set before the pool is shut down.
    pub(super) closing: &'a AtomicBool,
    pub(super) watch: &'a Watch,
    /// `true` if outcomes are awaited with wakers that block.
    pub(super) blocking_wakers: bool,
    /// `true` if the pool may break because it cannot start workers.
    pub(super) may_break: bool,
}

impl Submitter<'_> {
    pub(super) fn run(mut self) -> Result<Account, String> {
        let mut account = Account::default();
        for _ in 0..self.operations {
            if self.books.is_some_and(|books| !self.settle_some(books, &mut account)) {
                break;
            }
            if happens(&mut self.random, self.mix.upheavals) && !self.upheaval()? {
                break;
            }
            let goes_on = match self.random.within(0..95) {
                0..70 => self.submit(&mut account)?,
                70..77 => {
                    self.cancel(&mut account);
                    true
                }
                77..80 => {
                    self.kill(&mut account);
                    true
                }
                80..92 => {
                    self.collect(&mut account);
                    true
                }
                _ => {
                    if let Some((sent, handle)) = self.take_any(&mut account) {
                        drop(handle);
                        account.dropped.push(sent);
                    }
                    true
                }
            };
            if !goes_on {
                break;
            }
        }
        Ok(account)
    }

    /// Settles some tasks. Returns `false` if nothing is left to do.
    fn settle_some(&mut self, books: &Books<'_>, account: &mut Account) -> bool {
        while account.open.len() > MAX_OPEN {
            self.collect(account);
        }
        if account.closed.len() + account.dropped.len() > MAX_OPEN {
            books.settle(account);
        }
        books.goes_on()
    }

    /// Causes an upheaval. Returns `false` if the pool no longer accepts tasks.
    fn upheaval(&mut self) -> Result<bool, String> {
        match self.random.within(0..5) {
            0 => self.warm_up(),
            1 => self.resize_or_quiesce(),
            2 => self.broadcast(),
            _ => self.map(),
        }
    }

    /// Submits a task. Returns `false` if the pool no longer accepts tasks.
    fn submit(&mut self, account: &mut Account) -> Result<bool, String> {
        let deadline = self.random.chance(15).then(|| self.random.within(1..30));
        let queue_deadline = self.random.chance(5).then(|| self.random.within(1..30));
        let behavior =
            Behavior::choose(&mut self.random, self.mix, self.may_hang || deadline.is_some());
        let order = Order::new(behavior, self.mix, &mut self.random);
        let retries = u32::try_from(self.random.within(0..5)).expect("a small number");
        let sent = Sent {
            behavior,
            number: order.number,
            size: order.ballast.len(),
            retries,
            cancelled: None,
            killed: None,
            may_be_late: deadline.is_some(),
            may_expire: queue_deadline.is_some(),
        };
        let priority = if self.random.chance(10) { self.random.within(0..5) } else { 2 };
        let priority = i32::try_from(priority).expect("a small number") - 2;
        let mut task = self
            .pool
            .task(perform)
            .retries(retries)
            .label(format!("{behavior:?}"))
            .priority(priority);
        if let Some(limit) = deadline {
            let limit = Duration::from_millis(limit);
            let soft = self.random.chance(30);
            task = if soft { task.soft_deadline(limit / 2) } else { task }.deadline(limit);
        }
        if let Some(limit) = queue_deadline {
            task = task.queue_deadline(Duration::from_millis(limit));
        }
        let submitted = match self.random.within(0..3) {
            0 => self.watch.during("submit", || task.submit(order)),
            1 => self.watch.during("try_submit", || task.try_submit(order)),
            _ => {
                let time = self.random.below(Duration::from_millis(20));
                self.watch.during("submit_timeout", || task.submit_timeout(order, time))
            }
        };
        match submitted {
            Ok(handle) => {
                if let Some(books) = self.books {
                    books.one_more();
                }
                account.open.push((sent, handle));
                Ok(true)
            }
            Err(error) => match error.kind() {
                SubmitErrorKind::Full | SubmitErrorKind::TimedOut => {
                    account.refused += 1;
                    self.assert(
                        error.into_argument().number == sent.number,
                        "a refused submit returned another argument",
                    )?;
                    Ok(true)
                }
                SubmitErrorKind::PoolClosed => {
                    self.assert(
                        self.closing.load(Ordering::Acquire),
                        "a submit reported a closed pool, but nobody closed it",
                    )?;
                    Ok(false)
                }
                SubmitErrorKind::PoolBroken { .. } if self.may_break => Ok(false),
                other => Err(format!("a submission was refused: {other:?}")),
            },
        }
    }

    fn cancel(&mut self, account: &mut Account) {
        if let Some((mut sent, handle)) = self.take_any(account) {
            sent.cancelled = Some(self.watch.during("cancel", || handle.cancel()));
            account.open.push((sent, handle));
        }
    }

    fn kill(&mut self, account: &mut Account) {
        if let Some((mut sent, handle)) = self.take_any(account) {
            let killed = self.watch.during("kill", || handle.kill());
            sent.killed = Some(killed || sent.killed == Some(true));
            account.open.push((sent, handle));
        }
    }

    /// Resizes or quiesces the pool.
    fn resize_or_quiesce(&mut self) -> Result<bool, String> {
        let changed = match self.resizes {
            Some(most) if self.random.chance(70) => {
                let most = u64::try_from(most).expect("a small number");
                let workers =
                    usize::try_from(self.random.within(1..most + 1)).expect("a small number");
                self.watch.during("resize", || self.pool.resize(workers))
            }
            _ => self.watch.during("quiesce", || self.pool.quiesce()),
        };
        match changed {
            Ok(()) => Ok(true),
            Err(PoolError::Closed) => Ok(false),
            Err(PoolError::Broken { .. }) if self.may_break => Ok(false),
            Err(other) => Err(format!("the number of workers cannot be changed: {other}")),
        }
    }

    /// Broadcasts a task. Each worker returns one outcome, unless it is killed or its slot goes
    /// away.
    fn broadcast(&mut self) -> Result<bool, String> {
        let slot = |(): ()| brigade::worker::slot();
        match self.watch.during("broadcast", || self.pool.broadcast(slot, ())) {
            Ok(handles) => {
                for (index, handle) in (0..).zip(handles) {
                    match self.watch.during("the outcome of a broadcast", || handle.wait()) {
                        Ok(slot) => self.assert(slot == Some(index), "another worker ran it")?,
                        Err(error) => self.assert(
                            error.is_cancelled()
                                || error.is_worker_death()
                                || matches!(error.kind(), brigade::TaskErrorKind::Killed)
                                || self.may_break,
                            &format!("a broadcast failed: {error}"),
                        )?,
                    }
                }
                Ok(true)
            }
            Err(error) if *error.kind() == SubmitErrorKind::PoolClosed || self.may_break => {
                Ok(false)
            }
            Err(error) => Err(format!("a broadcast was refused: {error}")),
        }
    }

    fn collect(&mut self, account: &mut Account) {
        let Some((sent, mut handle)) = self.take_any(account) else { return };
        let outcome = match self.random.within(0..3) {
            0 => handle.try_get(),
            1 => {
                let time = self.random.below(Duration::from_millis(20));
                self.watch.during("wait_timeout", || handle.wait_timeout(time))
            }
            _ => {
                let pause = self.random.below(Duration::from_millis(3));
                let outcome = self.watch.during(&format!("the outcome of {sent:?}"), || {
                    if self.blocking_wakers {
                        wait_with_blocking_waker(handle, pause)
                    } else {
                        handle.wait()
                    }
                });
                account.closed.push((sent, outcome));
                return;
            }
        };
        match outcome {
            Some(outcome) => account.closed.push((sent, outcome)),
            None => account.open.push((sent, handle)),
        }
    }

    fn warm_up(&self) -> Result<bool, String> {
        match self.watch.during("warm_up", || self.pool.warm_up()) {
            Ok(()) => Ok(true),
            Err(PoolError::Closed) => Ok(false),
            Err(_) if self.may_break => Ok(true),
            Err(other) => Err(format!("warm_up failed: {other}")),
        }
    }

    /// Runs a short map; its retries outlast every intruder.
    fn map(&mut self) -> Result<bool, String> {
        let inputs = 0..self.random.within(1..30);
        let taken = usize::try_from(self.random.within(1..30)).expect("a small number");
        let double = |number: u64| 2 * number;
        let outcomes: Vec<_> = self.watch.during("map", || {
            self.pool.map(double, inputs.clone()).window(5).retries(1_000).take(taken).collect()
        });
        for (number, outcome) in inputs.zip(outcomes) {
            match outcome {
                Ok(result) => self.assert(result == 2 * number, "map mixed up its values")?,
                Err(error) => {
                    self.assert(
                        self.closing.load(Ordering::Acquire) || self.may_break,
                        &format!("map failed: {error}"),
                    )?;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn take_any(&mut self, account: &mut Account) -> Option<(Sent, Handle<Reply>)> {
        if account.open.is_empty() {
            return None;
        }
        let index = self.random.within(0..account.open.len() as u64);
        Some(account.open.swap_remove(usize::try_from(index).expect("an index")))
    }

    #[expect(clippy::unused_self, reason = "reads as what it is: this submitter's assertion")]
    fn assert(&self, holds: bool, otherwise: &str) -> Result<(), String> {
        if holds { Ok(()) } else { Err(otherwise.to_owned()) }
    }
}
