//! A caller that waits, and handles everybody's answers meanwhile. The protocol is that of the module above.

use std::thread;
use std::time::Instant;

use brigade_wire::link::ring::spin_until;
use brigade_wire::ring::{Doorbell, Listener};

use super::Collecting;
use crate::awaited::{Awaited, Sleeper, park_for, park_until};
use crate::drive::afterwards::Afterwards;
use crate::drive::shared::Shared;

/// A caller that waits for a task.
pub(super) struct Caller<'a> {
    shared: &'a Shared,
    collecting: &'a Collecting,
    doorbell: &'a Doorbell,
    listens: bool,
    /// It cannot sleep at the doorbell; others bring about what it waits for.
    parks: bool,
    /// Whose thread this was before; see [`Caller::new`].
    owner: usize,
}

impl<'a> Caller<'a> {
    /// While a caller handles outcomes it is one of the pool's threads: a waker that runs on it, and drops the pool,
    /// must not wait for an end that this thread has to bring about.
    pub(super) fn new(shared: &'a Shared, collecting: &'a Collecting) -> Self {
        let (doorbell, owner) = (&collecting.doorbell, shared.own_this_thread());
        Self { shared, collecting, doorbell, listens: false, parks: false, owner }
    }

    pub(super) fn wait_for(&mut self, awaited: &impl Awaited, deadline: Option<Instant>) {
        while awaited.is_awaited()
            && deadline.is_none_or(|deadline| Instant::now() < deadline)
            // A waker may have forked.
            && !self.shared.is_forked()
        {
            if self.parks {
                park_for(awaited, deadline);
            } else if self.listens || self.begin_to_listen() {
                self.look_and_sleep(awaited, deadline);
            } else {
                self.sleep_until_woken(awaited, deadline);
            }
        }
    }

    /// False when another caller listens; then this one is in the list of those that may take over.
    fn begin_to_listen(&mut self) -> bool {
        let mut core = self.shared.lock();
        if core.caller_listens {
            core.waiting_callers.push(thread::current());
            return false;
        }
        core.caller_listens = true;
        self.listens = true;
        self.doorbell.listen(Listener::Nobody);
        true
    }

    fn sleep_until_woken(&self, awaited: &impl Awaited, deadline: Option<Instant>) {
        awaited.set_sleeper(Sleeper::Parked(thread::current()));
        // Woken by the outcome, by a listener that leaves, or for no reason.
        let handed_over = || !self.shared.lock().caller_listens;
        if awaited.is_awaited() && !handed_over() {
            park_until(deadline);
        }
        let me = thread::current().id();
        self.shared.lock().waiting_callers.retain(|other| other.id() != me);
    }

    fn look_and_sleep(&mut self, awaited: &impl Awaited, deadline: Option<Instant>) {
        if self.look() > 0 || !self.listens || !awaited.is_awaited() {
            return;
        }
        let may_spin = self.shared.lock().may_spin(self.shared, self.doorbell);
        if may_spin && spin_until(|| self.look() > 0) {
            return;
        }
        let mut after = Afterwards::default();
        let mut core = self.shared.lock();
        self.doorbell.listen(Listener::Caller);
        let collected = core.collect(self.shared, &mut after);
        drop(core);
        // What follows from this look is done before sleeping.
        let slept = if collected == 0 && after.is_empty() {
            self.sleep_at_the_doorbell(awaited, deadline)
        } else {
            Ok(())
        };
        self.doorbell.listen(Listener::Nobody);
        self.run(after);
        if let Err(error) = slept {
            self.parks = true;
            self.shared.give_up("wait for answers", &error);
        }
    }

    fn look(&mut self) -> usize {
        let mut after = Afterwards::default();
        let mut core = self.shared.lock();
        let collected = core.collect(self.shared, &mut after);
        core.taken_by_callers += collected as u64;
        drop(core);
        self.run(after);
        collected
    }

    fn sleep_at_the_doorbell(
        &self,
        awaited: &impl Awaited,
        deadline: Option<Instant>,
    ) -> std::io::Result<()> {
        awaited.set_sleeper(Sleeper::AtTheDoorbell);
        let mut slept = Ok(true);
        if awaited.is_awaited() {
            let left = deadline.map(|deadline| {
                let left = deadline.saturating_duration_since(Instant::now());
                brigade_sys::clock::now().saturating_add(left)
            });
            slept = self.collecting.callers_sleep.wait(left);
        }
        awaited.wake_up();
        self.doorbell.caller().drain();
        slept.map(|_| ())
    }

    /// Before code of users runs, which may wait for other tasks or take long, somebody else listens.
    fn run(&mut self, after: Afterwards) {
        if self.listens && after.has_foreign_code() {
            self.hand_over();
        }
        after.run(self.shared);
    }
}

/// A caller that leaves, also by a panic, hands over to another or to the collector thread.
impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if self.listens && !self.shared.is_forked() {
            self.hand_over();
        }
        Shared::give_back_this_thread(self.owner);
    }
}

impl Caller<'_> {
    fn hand_over(&mut self) {
        self.listens = false;
        let mut after = Afterwards::default();
        let mut core = self.shared.lock();
        core.caller_listens = false;
        // The next caller may have its outcome already and leave; until one listens, the thread does.
        self.doorbell.listen(if core.thread_is_quiet {
            Listener::Nobody
        } else {
            Listener::Thread
        });
        core.collect(self.shared, &mut after);
        if let Some(next) = core.waiting_callers.pop() {
            next.unpark();
        }
        drop(core);
        after.run(self.shared);
    }
}
