//! Steps of growing force toward one end, each with time to take effect.

use std::time::Duration;

use crate::time::Monotonic;

/// The progress of an escalation: the steps that are left, and the time of the next one.
///
/// Steps are taken in their order, each at most once. The time before a step counts from the moment
/// at which the previous step was taken. So a caller that is late shortens no step's time, and
/// takes two steps at once only if there is no time between them.
///
/// ```
/// use brigade_base::{Escalation, Monotonic};
/// use std::time::Duration;
///
/// let second = Duration::from_secs(1);
/// let start = Monotonic::ZERO;
/// let mut escalation = Escalation::new(start, [(second, "terminate"), (2 * second, "kill")]);
/// assert_eq!(escalation.advance(start), None);
/// let late = start.saturating_add(5 * second);
/// assert_eq!(escalation.advance(late), Some("terminate"));
/// assert_eq!(escalation.advance(late), None);
/// assert_eq!(escalation.next_deadline(), Some(late.saturating_add(2 * second)));
/// assert!(escalation.skip_to(late, "kill"));
/// assert_eq!(escalation.next_deadline(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Escalation<S, const N: usize> {
    /// Each step with the time before it.
    steps: [(Duration, S); N],
    /// Number of steps that were taken or skipped.
    done: usize,
    /// `None` if no step is left, or if the next one has no time.
    due: Option<Monotonic>,
}

impl<S: Copy + PartialEq, const N: usize> Escalation<S, N> {
    /// Creates an escalation that begins at `now`. Each step comes with the time before it.
    pub fn new(now: Monotonic, steps: [(Duration, S); N]) -> Self {
        let mut escalation = Self { steps, done: 0, due: None };
        escalation.plan(now);
        escalation
    }

    /// Returns the time of the next step.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        self.due
    }

    /// Takes and returns the next step if it is due.
    pub fn advance(&mut self, now: Monotonic) -> Option<S> {
        self.due.filter(|due| *due <= now)?;
        let (_, step) = self.steps.get(self.done)?;
        let step = *step;
        self.done += 1;
        self.plan(now);
        Some(step)
    }

    /// Takes `step` at once, without the steps before it. Returns `false` if it was taken or
    /// skipped already.
    pub fn skip_to(&mut self, now: Monotonic, step: S) -> bool {
        let left = &self.steps[self.done..];
        let Some(skipped) = left.iter().position(|(_, other)| *other == step) else {
            return false;
        };
        self.done += skipped + 1;
        self.plan(now);
        true
    }

    /// Changes the time of the next step. Without one, the escalation rests until
    /// [`skip_to`](Self::skip_to).
    pub fn reschedule(&mut self, due: Option<Monotonic>) {
        self.due = due.filter(|_| self.done < N);
    }

    /// Sets the time of the next step, after the step before it was taken at `now`.
    fn plan(&mut self, now: Monotonic) {
        self.due = self.steps.get(self.done).map(|(wait, _)| now.saturating_add(*wait));
    }
}

#[cfg(test)]
mod tests;
