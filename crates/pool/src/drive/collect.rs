//! Collects outcomes that workers write to shared memory. The callers that wait are leader and
//! followers (Schmidt and others, 2000), and the leader handles the outcomes of all.
//!
//! `collect/README.md` says why, names the algorithms, and has what was measured.
//!
//! No thread stands between a worker and the caller that waits for it. A caller that waits for a
//! task *listens*: it reads the rings of all workers, handles the outcomes for all callers, and
//! sleeps on the pool's doorbell if it finds nothing. One caller listens at a time. The others
//! sleep until their task is complete, or until the listener leaves and one of them takes over. If
//! no caller waits, or as many as there are cores, the workers ring the collector thread.
//!
//! Protocol (under the core's lock, except for sleeping and spinning):
//! - `listen(..)` comes before a last look at the rings, and a worker publishes before it checks
//!   who listens. So an outcome is either seen by that look or announced by a ring of the bell.
//! - `caller_listens` is `true` from the moment a caller starts to look until it hands over. In
//!   that time only this caller may change who is rung.
//! - The collector thread always sleeps on its own descriptor and is rung only while no caller
//!   listens. If callers keep coming (a loop of submits, or of calls), it stays responsible after a
//!   ring without asking to be rung again, and looks again after a moment, so that a busy caller is
//!   not slowed down by waking a thread for each outcome, nor by asking for it. In that time a
//!   worker that is about to sleep rings it if nobody listens: perhaps no caller comes again soon.
//! - Many callers in turn would spend most of their time on handing over. So from a certain number
//!   on, a caller listens only while it runs: before it sleeps, it hands over to the collector
//!   thread, which handles the outcomes of all sleeping callers in one go. While that thread runs
//!   user code, which may take long, one of the callers sleeps as the listener again. A caller that
//!   finds another one listening looks by itself for a moment if tasks are short: it is running, so
//!   it has its outcome long before it could be woken.
//! - Callers that have their outcomes wake each other, a few at a time; see `wake_queue`.
//! - A wake-up for each outcome would slow down brief tasks. So a listener may be patient: a worker
//!   that has more to do announces its outcomes later (`RemoteDoorbell::ring_later`). The worker
//!   guesses from the last task how long the others take, so a patient listener looks again by
//!   itself after `PATIENCE`. If it finds nothing, it asks to be rung for each outcome, until it
//!   finds one.
//! - A caller that spins watches the rings without the core's lock, and takes it to look.
//! - A future may be a listening caller for some microseconds when it is polled, see `glances`. It
//!   never sleeps at the doorbell, and hands over in any case.
//! - A caller hands over before it runs user code, and it carries out everything that follows from
//!   a look before it sleeps.
//! - A thread that cannot wait for descriptors breaks the pool and kills its workers, so that all
//!   outcomes come from the reaper.
//!
//! The threads see the rings through the traits in `rings`, so that the models in `loom` run the
//! protocol itself.

mod caller;
pub(super) mod collecting;
pub(crate) mod glances;
pub(super) mod listeners;
#[cfg(all(loom, test))]
mod loom;
mod next;
mod patience;
mod rings;
mod turn;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use brigade_scheduler::Event;
use brigade_supervisor::{Connection, HostLink};
use brigade_sys::arena::ArgumentArena;
use brigade_sys::catch_panic::catch_panic;
use brigade_sys::clock::{Monotonic, now};
use brigade_wire::FinishedInline;
use brigade_wire::link::ring::SPIN;
use brigade_wire::ring::{Doorbell, Listener};

use super::deferred::Deferred;
use super::large::ToCopy;
use super::outcome::{EventData, RunReport};
use super::shared::{Core, Shared};
use crate::payload::Value;
use brigade_task::backend::{Bytes, Wait, park_for};
use caller::Caller;
use collecting::Collecting;
use glances::{GLANCE, Glance};
use listeners::NextTurn;
use next::{Next, next_event};
use rings::{PoolRings, Role};
use turn::Turn;

/// A caller spins for this time although others wait, if tasks are short: about the cost of the
/// switch to another thread and back.
const SHORT_SPIN: Duration = Duration::from_micros(5);

impl Shared {
    /// Returns the arena for large arguments.
    pub(crate) fn arguments(&self) -> Option<&Arc<ArgumentArena>> {
        self.collecting.as_ref()?.arguments.as_ref().filter(|_| !self.is_forked())
    }

    /// Returns the number of bytes up to which a large argument stays with its task: the limit of
    /// messages, or 0 if links copy all arguments.
    #[inline]
    pub(crate) fn most_kept(&self) -> usize {
        if self.collecting.is_some() { self.config.supervisor.message_limit } else { 0 }
    }

    /// Handles all outcomes that have arrived.
    pub(crate) fn collect(&self) {
        if !self.is_forked() {
            self.with_core(|core, deferred| core.collect(None, self, deferred));
        }
    }

    /// Blocks until `wait` is no longer pending or the deadline has passed. Returns immediately in
    /// a fork of the process.
    pub(crate) fn wait_for(&self, wait: &dyn Wait, deadline: Option<Instant>) {
        if self.is_forked() {
            return;
        }
        match &self.collecting {
            Some(collecting) if wait.is_pending() => {
                // While a caller handles outcomes, it counts as one of the pool's threads.
                // Otherwise a waker that runs on it and drops the pool would wait for an end that
                // this thread has to bring about.
                let _owned = self.borrow_this_thread();
                Caller::new(&PoolRings { shared: self, collecting }).wait_for(wait, deadline);
                if deadline.is_none() && !self.is_forked() {
                    collecting.wake_queue.take_turns();
                }
            }
            _ => park_for(wait, deadline),
        }
    }

    /// Waits some microseconds for the outcome that a future waits for, unless another thread
    /// looks.
    pub(crate) fn glance(&self, wait: &dyn Wait) -> Glance {
        let Some(collecting) = &self.collecting else { return Glance::Skip };
        // See `wait_for`.
        let _owned = self.borrow_this_thread();
        Caller::new(&PoolRings { shared: self, collecting }).glance(wait)
    }
}

/// Runs the collector thread.
pub(super) fn run(shared: &Shared) {
    let Some(collecting) = &shared.collecting else {
        // Attendants read the outcomes. Only user code is left for this thread.
        while shared.user_code.wait() {
            shared.run_queued_user_code();
        }
        return;
    };
    let (mut turn, mut watch) = (Turn::default(), None);
    loop {
        let result = catch_panic(|| {
            while take_turn(&mut turn, &mut watch, shared, collecting)? {}
            Ok::<(), std::io::Error>(())
        });
        match result {
            Ok(Ok(())) => break,
            Ok(Err(error)) => {
                shared.give_up("wait for outcomes", &error);
                break;
            }
            // The panic hook has reported it. The next turn asks the workers to ring again.
            Err(_) => {
                shared.give_up("collect outcomes", &"the collector thread panicked");
                turn.repeat();
            }
        }
    }
    if !shared.is_forked() {
        shared.user_code.end();
        shared.run_queued_user_code();
        collecting.wake_queue.set_unlimited(true);
    }
}

/// Takes one turn of the collector thread. `watch` is the time of its next look at the queue of
/// callers to wake. Returns `false` once the pool has ended.
fn take_turn(
    turn: &mut Turn,
    watch: &mut Option<Monotonic>,
    shared: &Shared,
    collecting: &Collecting,
) -> std::io::Result<bool> {
    if shared.is_forked() {
        return Ok(false);
    }
    let due = turn.due();
    // Takes the wake-up before the look, so that a later one stays for the next turn.
    let rung = collecting.doorbell.thread().wait(due.into_iter().chain(*watch).min())?;
    if collecting.ended.load(Ordering::Acquire) {
        return Ok(false);
    }
    let time = now();
    *watch = collecting.wake_queue.look(*watch, time);
    // A turn for the queue alone is not in vain.
    let rung = rung || due.is_none_or(|due| time < due);
    let mut deferred = Deferred::default();
    turn.look(&PoolRings { shared, collecting }, rung, &mut deferred);
    deferred.run(shared);
    shared.run_queued_user_code();
    Ok(true)
}

impl Core {
    /// Handles all outcomes that have arrived and returns their number. `time` is the time of this
    /// look, unless it is read when it is needed.
    pub(super) fn collect(
        &mut self,
        mut time: Option<Monotonic>,
        shared: &Shared,
        deferred: &mut Deferred,
    ) -> usize {
        let Some(collecting) = &shared.collecting else { return 0 };
        let mut collected = 0;
        for slot in 0..self.worker_slots.len() {
            collected += self.collect_slot(slot, &mut time, shared, deferred);
        }
        if collected > 0 && self.scheduler.may_balance() {
            let time = time.unwrap_or_else(now);
            self.handle(time, Event::Balance, EventData::Nothing, shared, deferred);
        }
        self.allow_spinning(shared, &collecting.doorbell);
        collecting.wake_queue.set_in_turn(self.scheduler.has_short_tasks());
        // The outcomes of one worker may have sent tasks to another.
        let slots = self.worker_slots.iter_mut();
        for connection in slots.filter_map(|slot| slot.as_mut()?.connection.as_mut()) {
            deferred.rouse(connection.announce());
        }
        collected
    }

    /// Makes workers ring the collector thread if that relies on callers to look, as a caller is
    /// about to sleep without listening.
    pub(super) fn stop_relying_on_callers(&mut self, shared: &Shared, deferred: &mut Deferred) {
        let relies = self.listeners.next_turn == NextTurn::Due;
        if let Some(collecting) = shared.collecting.as_ref().filter(|_| relies)
            && !self.listeners.caller_listens()
        {
            // The thread looks by itself soon, so workers that have more to do may ring later.
            collecting.doorbell.listen(Listener::PatientThread);
            self.collect(None, shared, deferred);
        }
    }

    /// Handles the outcomes of one worker and returns their number; for `time` see `collect`.
    pub(super) fn collect_slot(
        &mut self,
        slot: usize,
        time: &mut Option<Monotonic>,
        shared: &Shared,
        deferred: &mut Deferred,
    ) -> usize {
        let mut collected = 0;
        while let Some(Some(worker_slot)) = self.worker_slots.get_mut(slot) {
            let (worker, kept) = (worker_slot.id, &mut worker_slot.kept);
            let Some(Connection { link: HostLink::Ring(end), results, broken, .. }) =
                &mut worker_slot.connection
            else {
                break;
            };
            // After a malformed message, the rest is ignored.
            if *broken || worker_slot.awaits_copy || !end.has_more() {
                break;
            }
            let memory = (results.as_ref(), kept, shared);
            let next = next_event(worker, end, memory, &self.scheduler, &mut collected, deferred);
            let next = match next {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(problem) => {
                    self.break_off(worker, problem, shared, deferred);
                    break;
                }
            };
            collected += 1;
            let time = *time.get_or_insert_with(now);
            match next {
                Next::Inline(finished) => {
                    let FinishedInline { task, attempt, run_time, began, worn, .. } = finished;
                    let run_time = Duration::from_nanos(run_time);
                    let report = RunReport { worker, began, run_time };
                    let value = Bytes::copy(FinishedInline::value(end.consumer.message()));
                    let data = EventData::Outcome(Ok(Value::Inline(value)), report);
                    let failure = None;
                    let event = Event::Finished { worker, task, attempt, run_time, worn, failure };
                    self.handle(time, event, data, shared, deferred);
                }
                Next::Large(large) => {
                    if let Some(worker_slot) = self.worker_slot_mut(worker) {
                        worker_slot.awaits_copy = true;
                        let process = Arc::clone(&worker_slot.process);
                        deferred.work().to_copy.push(ToCopy { process, large: *large });
                    }
                }
                Next::Other(next) => {
                    let (event, data) = *next;
                    self.handle(time, event, data, shared, deferred);
                }
            }
        }
        if let Some(Some(worker_slot)) = self.worker_slots.get_mut(slot)
            && let Some(HostLink::Ring(end)) =
                worker_slot.connection.as_mut().map(|connection| &mut connection.link)
            && (collected > 0 || end.consumer.is_in_the_middle())
        {
            end.made_room();
        }
        collected
    }

    /// Updates the rings that callers watch while they spin; call it when a connection was added or
    /// removed.
    pub(super) fn watch_rings(&mut self) {
        let connections = self.worker_slots.iter().flatten();
        let ends = connections.filter_map(|slot| match &slot.connection.as_ref()?.link {
            HostLink::Ring(end) => Some(end.consumer.watch()),
            HostLink::Connected(_) => None,
        });
        self.watched = ends.collect();
    }

    /// Tells workers whether they may spin, and returns the same: `true` if there is a core for
    /// each busy process and for this thread.
    ///
    /// Spinning is not allowed while enough other callers wait to keep the cores busy in turn,
    /// because it would take time from them, unless tasks are so short that a worker that sleeps
    /// between them takes more. Nor is it if each task has a process of its own: outcomes are far
    /// apart then, and the starts of processes need the cores.
    fn allow_spinning(&self, shared: &Shared, doorbell: &Doorbell) -> bool {
        let allowed = !shared.config.scheduler.is_fresh()
            && self.scheduler.busy_workers() < shared.cores
            && (self.scheduler.has_short_tasks() || self.listeners.waiting() < shared.cores);
        doorbell.allow_spinning(allowed);
        allowed
    }

    /// Returns the time for which a caller may spin before it sleeps. It must not do so right after
    /// it has woken a worker, because that worker is often placed on the caller's core, where it
    /// cannot run before the caller sleeps.
    fn spin_limit(&mut self, role: Role, shared: &Shared, doorbell: &Doorbell) -> Option<Duration> {
        let is_worth_while = match role {
            Role::Listens | Role::Polls => self.allow_spinning(shared, doorbell),
            Role::Waits => self.scheduler.has_short_tasks() && !shared.config.scheduler.is_fresh(),
        };
        let woke_worker = std::mem::take(&mut self.woke_worker);
        (is_worth_while && !woke_worker).then_some(match role {
            Role::Listens if !self.listeners.are_many() => SPIN,
            Role::Polls => GLANCE,
            Role::Listens | Role::Waits => SHORT_SPIN,
        })
    }
}
