//! One thread's operations on a pool.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brigade::{Handle, Pool, PoolError, SubmitErrorKind, TaskError};
use brigade_testkit::Random;

use super::deed::{Deed, Order, Reply, Sent, perform};
use super::watch::Watch;

/// Everything that one submitter knows at its end.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Not waited for yet.
    pub(super) open: Vec<(Sent, Handle<Reply>)>,
    /// With their outcome.
    pub(super) closed: Vec<(Sent, Result<Reply, TaskError>)>,
    /// Handles that were dropped, with their task's outcome unknown.
    pub(super) dropped: Vec<Sent>,
    /// Submissions that were refused because the queue was full.
    pub(super) refused: u64,
}

/// What a submitter works with.
pub(super) struct Submitter<'a> {
    pub(super) pool: &'a Pool,
    pub(super) random: Random,
    pub(super) operations: u64,
    pub(super) may_hang: bool,
    /// Set before the pool is shut down.
    pub(super) closing: &'a AtomicBool,
    pub(super) watch: &'a Watch,
}

impl Submitter<'_> {
    pub(super) fn run(mut self) -> Result<Account, String> {
        let mut account = Account::default();
        for _ in 0..self.operations {
            let goes_on = match self.random.within(0..100) {
                0..70 => self.submit(&mut account)?,
                70..80 => {
                    self.cancel(&mut account);
                    true
                }
                80..92 => {
                    self.collect(&mut account);
                    true
                }
                92..95 => {
                    if let Some((sent, handle)) = self.take_any(&mut account) {
                        drop(handle);
                        account.dropped.push(sent);
                    }
                    true
                }
                95..97 => self.warm_up()?,
                _ => self.map()?,
            };
            if !goes_on {
                break;
            }
        }
        Ok(account)
    }

    /// False when the pool takes nothing any more.
    fn submit(&mut self, account: &mut Account) -> Result<bool, String> {
        let deed = Deed::choose(&mut self.random, self.may_hang);
        let order = Order::new(deed, &mut self.random);
        let retries = u32::try_from(self.random.within(0..5)).expect("a small number");
        let sent = Sent {
            deed,
            number: order.number,
            size: order.ballast.len(),
            retries,
            cancelled: None,
        };
        let task = self.pool.task(perform).retries(retries).label(format!("{deed:?}"));
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
                account.open.push((sent, handle));
                Ok(true)
            }
            Err(error) => match error.kind() {
                SubmitErrorKind::Full | SubmitErrorKind::TimedOut => {
                    account.refused += 1;
                    self.assert(
                        error.into_argument().number == sent.number,
                        "a refused argument is another one",
                    )?;
                    Ok(true)
                }
                SubmitErrorKind::PoolClosed => {
                    self.assert(
                        self.closing.load(Ordering::Acquire),
                        "the pool was closed, but nobody closed it",
                    )?;
                    Ok(false)
                }
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

    fn collect(&mut self, account: &mut Account) {
        let Some((sent, mut handle)) = self.take_any(account) else { return };
        let outcome = match self.random.within(0..3) {
            0 => handle.try_get(),
            1 => {
                let time = self.random.below(Duration::from_millis(20));
                self.watch.during("wait_timeout", || handle.wait_timeout(time))
            }
            _ => {
                let outcome = self.watch.during(&format!("wait for {sent:?}"), || handle.wait());
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
            Err(other) => Err(format!("warm_up failed: {other}")),
        }
    }

    /// A short map; retries outlast every intruder.
    fn map(&mut self) -> Result<bool, String> {
        let inputs = 0..self.random.within(1..30);
        let taken = usize::try_from(self.random.within(1..30)).expect("a small number");
        let double = |number: u64| 2 * number;
        let outcomes: Vec<_> = self.watch.during("map", || {
            self.pool.map(double, inputs.clone()).window(5).retries(1_000).take(taken).collect()
        });
        for (number, outcome) in inputs.zip(outcomes) {
            match outcome {
                Ok(result) => self.assert(result == 2 * number, "map mixed its results up")?,
                Err(error) => {
                    self.assert(
                        self.closing.load(Ordering::Acquire),
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
