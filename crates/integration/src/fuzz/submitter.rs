//! A thread that submits innocent and guilty tasks and waits for all of them.

use brigade::{Handle, Pool, Stdio, TaskError};
use brigade_testkit::Random;

use super::guilty::{LIMIT, Order, scribbles};
use super::innocent::{Innocent, answers};
use super::plan::Plan;
use super::summary::Summary;
use super::verdict::{Case, check_guilty};
use crate::watch::Watch;

pub(super) struct Submitter<'a> {
    pub(super) pool: &'a Pool,
    pub(super) plan: &'a Plan,
    pub(super) watch: &'a Watch,
    pub(super) random: Random,
    /// Number of the first task.
    pub(super) number: u64,
    pub(super) cases: Vec<Case>,
    pub(super) summary: Summary,
    pub(super) innocent: Vec<(Innocent, Handle<Vec<u8>>)>,
    pub(super) guilty: Vec<(Order, Handle<u64>)>,
}

impl Submitter<'_> {
    /// Returns the outcomes that are not simply right. They are judged when everything is known.
    pub(super) fn run(mut self) -> Result<(Vec<Case>, Summary), String> {
        for _ in 0..self.plan.operations {
            match self.random.within(0..100) {
                percent if percent < self.plan.guilty => self.submit_guilty()?,
                percent if percent < 85 => self.submit_innocent()?,
                _ => self.map(),
            }
            if !self.plan.awaits_late && self.random.chance(40) {
                self.await_all()?;
            }
        }
        self.await_all()?;
        Ok((self.cases, self.summary))
    }

    fn next(&mut self) -> Innocent {
        self.number += 1;
        Innocent::new(&mut self.random, self.number, self.plan.large)
    }

    fn submit_innocent(&mut self) -> Result<(), String> {
        for _ in 0..self.random.within(1..12) {
            let innocent = self.next();
            let task = self.pool.task(answers).retries(self.plan.retries);
            let submitted = self.watch.during("room", || task.submit(innocent.argument()));
            let handle = submitted.map_err(|error| format!("not submitted: {error}"))?;
            self.innocent.push((innocent, handle));
        }
        Ok(())
    }

    fn submit_guilty(&mut self) -> Result<(), String> {
        self.number += 1;
        let spare_output = self.plan.stdio == Stdio::Inherit;
        let order = Order::new(&mut self.random, self.number, self.plan.link, spare_output);
        self.summary.count_guilty(self.plan.link, &order.targets);
        let task = self.pool.task(scribbles).deadline(LIMIT);
        let submitted = self.watch.during("room", || task.submit(order.clone()));
        let handle = submitted.map_err(|error| format!("not submitted: {error}"))?;
        self.guilty.push((order, handle));
        Ok(())
    }

    fn map(&mut self) {
        let count = self.random.within(1..40);
        let items: Vec<_> = (0..count).map(|_| self.next()).collect();
        let mut map = self.pool.map(answers, items.iter().map(|item| item.argument()));
        map = map.retries(self.plan.retries);
        if let Some(chunk) = self.plan.chunk {
            map = map.chunk(chunk);
        }
        for item in &items {
            let outcome = self.watch.during("an item of a map", || map.next());
            record(&mut self.cases, &mut self.summary, *item, outcome);
        }
    }

    fn await_all(&mut self) -> Result<(), String> {
        for (innocent, handle) in self.innocent.drain(..) {
            let what = format!("the outcome of {innocent:?}");
            let outcome = self.watch.during(&what, || handle.wait());
            record(&mut self.cases, &mut self.summary, innocent, Some(outcome));
        }
        for (order, handle) in self.guilty.drain(..) {
            let outcome = self.watch.during(&format!("the outcome of {order:?}"), || handle.wait());
            check_guilty(outcome)?;
        }
        Ok(())
    }
}

fn record(
    cases: &mut Vec<Case>,
    summary: &mut Summary,
    innocent: Innocent,
    outcome: Option<Result<Vec<u8>, TaskError>>,
) {
    match outcome {
        Some(Ok(value)) if innocent.is_right(&value) => summary.right += 1,
        other => cases.push(Case { number: innocent.number, outcome: other }),
    }
}
