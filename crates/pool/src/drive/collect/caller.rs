//! A caller that waits for a task and meanwhile collects the outcomes of all tasks. For the
//! protocol, see the parent module.

use std::thread;
use std::time::Instant;

use brigade_wire::link::ring::spin_until;
use brigade_wire::ring::{Doorbell, Listener};

use super::Collecting;
use crate::drive::deferred::Deferred;
use crate::drive::shared::Shared;
use crate::waiting::{Sleeper, Wait, park_for, park_until};

/// A caller that waits for a task.
pub(super) struct Caller<'a> {
    shared: &'a Shared,
    collecting: &'a Collecting,
    doorbell: &'a Doorbell,
    listens: bool,
    /// `true` if the caller cannot sleep at the doorbell; other threads bring about what it waits
    /// for.
    parks: bool,
    /// The previous owner of the thread; see [`Caller::new`].
    owner: usize,
}

impl<'a> Caller<'a> {
    /// While a caller handles outcomes, it counts as one of the pool's threads. Otherwise a waker
    /// that runs on it and drops the pool would wait for an end that this thread has to bring
    /// about.
    pub(super) fn new(shared: &'a Shared, collecting: &'a Collecting) -> Self {
        let (doorbell, owner) = (&collecting.doorbell, shared.own_this_thread());
        Self { shared, collecting, doorbell, listens: false, parks: false, owner }
    }

    pub(super) fn wait_for(&mut self, wait: &impl Wait, deadline: Option<Instant>) {
        while wait.is_pending()
            && deadline.is_none_or(|deadline| Instant::now() < deadline)
            // A waker may have forked.
            && !self.shared.is_forked()
        {
            if self.parks {
                park_for(wait, deadline);
            } else if self.listens || self.start_listening() {
                self.collect_and_sleep(wait, deadline);
            } else {
                self.sleep_until_woken(wait, deadline);
            }
        }
    }

    /// Returns `false` if another caller listens. This caller is then in the list of those that may
    /// take over.
    fn start_listening(&mut self) -> bool {
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

    fn sleep_until_woken(&self, wait: &impl Wait, deadline: Option<Instant>) {
        wait.set_sleeper(Sleeper::Parked(thread::current()));
        // The wake-up may come from the outcome or from a leaving listener, or be spurious.
        let handed_over = || !self.shared.lock().caller_listens;
        if wait.is_pending() && !handed_over() {
            park_until(deadline);
        }
        let me = thread::current().id();
        self.shared.lock().waiting_callers.retain(|other| other.id() != me);
    }

    fn collect_and_sleep(&mut self, wait: &impl Wait, deadline: Option<Instant>) {
        if self.collect() > 0 || !self.listens || !wait.is_pending() {
            return;
        }
        let may_spin = self.shared.lock().may_spin(self.shared, self.doorbell);
        if may_spin && spin_until(|| self.collect() > 0) {
            return;
        }
        let mut deferred = Deferred::default();
        let mut core = self.shared.lock();
        self.doorbell.listen(Listener::Caller);
        let collected = core.collect(self.shared, &mut deferred);
        drop(core);
        // Everything that follows from this look has to be done before sleeping.
        let slept = if collected == 0 && deferred.is_empty() {
            self.sleep_at_the_doorbell(wait, deadline)
        } else {
            Ok(())
        };
        self.doorbell.listen(Listener::Nobody);
        self.run(deferred);
        if let Err(error) = slept {
            self.parks = true;
            self.shared.give_up("wait for outcomes", &error);
        }
    }

    fn collect(&mut self) -> usize {
        let mut deferred = Deferred::default();
        let mut core = self.shared.lock();
        let collected = core.collect(self.shared, &mut deferred);
        core.collected_by_callers += collected as u64;
        drop(core);
        self.run(deferred);
        collected
    }

    fn sleep_at_the_doorbell(
        &self,
        wait: &impl Wait,
        deadline: Option<Instant>,
    ) -> std::io::Result<()> {
        wait.set_sleeper(Sleeper::AtTheDoorbell);
        let mut slept = Ok(true);
        if wait.is_pending() {
            let left = deadline.map(|deadline| {
                let left = deadline.saturating_duration_since(Instant::now());
                brigade_sys::clock::now().saturating_add(left)
            });
            slept = self.collecting.caller_poller.wait(left);
        }
        wait.clear_sleeper();
        self.doorbell.caller().drain();
        slept.map(|_| ())
    }

    /// Hands over before user code runs, which may wait for other tasks or take long.
    fn run(&mut self, deferred: Deferred) {
        if self.listens && deferred.has_user_code() {
            self.hand_over();
        }
        deferred.run(self.shared);
    }
}

/// Hands over to another caller or to the collector thread, even after a panic.
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
        let mut deferred = Deferred::default();
        let mut core = self.shared.lock();
        core.caller_listens = false;
        // The next caller may already have its outcome and leave, so until one listens, the
        // collector thread does.
        self.doorbell.listen(if core.thread_is_quiet {
            Listener::Nobody
        } else {
            Listener::Thread
        });
        core.collect(self.shared, &mut deferred);
        if let Some(next) = core.waiting_callers.pop() {
            next.unpark();
        }
        drop(core);
        deferred.run(self.shared);
    }
}
