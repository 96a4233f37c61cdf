//! Takes items out of a stream, and waits for them.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use brigade_supervisor::note;
use brigade_sys::clock;
use serde::de::DeserializeOwned;
use tracing::field;

use super::flat::{self, Turn};
use super::machine::Stall;
use super::{Item, Stream};

impl<A, R: DeserializeOwned + 'static> Stream<A, R> {
    /// Blocks until there is an item and returns it. Returns `None` after the last item of a stream
    /// that was [finished](Self::finish), and once it is closed.
    ///
    /// A thread that waits here handles the outcomes of all tasks of the pool meanwhile, as one
    /// that waits for a handle does.
    pub fn recv(&self) -> Option<Item<R>> {
        self.recv_until(None)
    }

    /// Returns an item if there is one. Does not block.
    pub fn try_recv(&self) -> Option<Item<R>> {
        self.recv_timeout(Duration::ZERO)
    }

    /// Blocks until there is an item and returns it. Returns `None` also once `timeout` has
    /// elapsed.
    pub fn recv_timeout(&self, timeout: Duration) -> Option<Item<R>> {
        // A timeout beyond the range of the clock counts as no timeout.
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// Returns the next item, or `None` after the last one, as [`recv`](Self::recv) does, for a
    /// future.
    ///
    /// If there is none yet, the task of `context` is woken once it should poll again. A stall is
    /// not reported, because no thread waits.
    pub fn poll_recv(&self, context: &mut Context<'_>) -> Poll<Option<Item<R>>> {
        if self.shared.is_forked() {
            return Poll::Ready(None);
        }
        let mut is_registered = false;
        loop {
            let next = self.next();
            if next.is_ready() || is_registered {
                return next;
            }
            self.shared.run_wakers(self.arrivals.completions.add_waker(context.waker()));
            is_registered = true;
        }
    }

    fn recv_until(&self, deadline: Option<Instant>) -> Option<Item<R>> {
        if self.shared.is_forked() {
            return None;
        }
        let mut is_late = false;
        loop {
            match self.next() {
                Poll::Ready(next) => return next,
                Poll::Pending if is_late => return None,
                Poll::Pending => {}
            }
            let now = Instant::now();
            is_late = deadline.is_some_and(|deadline| deadline <= now);
            if is_late {
                // With no time left to wait, outcomes that have arrived are still collected.
                self.shared.collect();
            } else {
                let look_again = self.look_for_stall(now);
                let until = [deadline, look_again].into_iter().flatten().min();
                self.shared.wait_for(&self.arrivals, until);
            }
            if self.shared.is_forked() {
                return None;
            }
        }
    }

    /// Takes the next item and submits the next input. Returns `None` if there will be no more.
    fn next(&self) -> Poll<Option<Item<R>>> {
        loop {
            let (epoch, is_over, turn) = self
                .with_machine(|machine| (machine.epoch(), machine.is_over(), flat::take(machine)));
            let (id, task) = match turn {
                Some(Turn::End(id, task)) => (id, task),
                Some(Turn::Item(id, task, taken)) => {
                    let item = task.emitted_item(id, &taken);
                    if self.with_machine(|machine| machine.epoch()) == epoch {
                        return Poll::Ready(Some(item));
                    }
                    continue;
                }
                None if is_over => return Poll::Ready(None),
                None => {
                    // Tasks that have finished may make way for others.
                    self.advance();
                    return Poll::Pending;
                }
            };
            self.room.notify_one();
            self.advance();
            let Some(item) = task.into_item(id) else { continue };
            // Decoding may have taken long.
            let ended = item.ended();
            if self.with_machine(|machine| machine.deliver(epoch, ended)) {
                return Poll::Ready(Some(item));
            }
        }
    }

    /// Reports a stall, and where the task is that has been running longest, if it waits there.
    /// Returns the time at which to look again.
    fn look_for_stall(&self, now: Instant) -> Option<Instant> {
        let after = self.settings.stall_after;
        if after.is_zero() {
            return None;
        }
        let time = clock::now();
        let (stall, look_again) = self.with_machine(|machine| machine.wait(time, after));
        if let Some(Stall { quiet, waiting, submitted, oldest }) = stall {
            let label = self.settings.task.label.clone();
            let (task, stack) = self.shared.longest_stack().unzip();
            let (task, stack) = (task.map(field::display), stack.map(field::display));
            note!(
                self.shared,
                WARN,
                stream = label.as_deref(),
                ?quiet,
                waiting,
                submitted,
                oldest,
                task,
                stack,
                "stream has had no item for a while"
            );
        }
        now.checked_add(look_again?.saturating_since(time))
    }
}
