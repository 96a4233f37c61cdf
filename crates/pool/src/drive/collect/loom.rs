//! Checks every interleaving of callers that wait, of the collector thread, and of a worker that
//! sends outcomes.
//!
//! The callers and the collector thread run the pool's code; rings and bell are the model's. A
//! thread that sleeps forever is a deadlock, which loom reports.

mod futures;
mod many;
mod passing;

use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use brigade_sys::clock::Monotonic;
use brigade_wire::ring::{Listener, PATIENCE};
use loom::sync::atomic::{AtomicU64, fence};
use loom::sync::{Condvar, MutexGuard};
use loom::thread::{self, ThreadId};

use super::caller::Caller;
use super::listeners::Listeners;
use super::rings::{LockedRings, Rings, Role, Spin};
use super::turn::Turn;
use crate::cell::TaskCell;
use crate::cell::tests::{cell, value};
use crate::drive::deferred::Deferred;
use crate::sync::{AtomicBool, Mutex, Ordering, current};
use crate::wake_queue::WakeQueue;
use brigade_task::backend::{Wait, park_for};

/// One ring, in which a worker sends the outcomes of all tasks in their order.
struct Model {
    tasks: Vec<TaskCell>,
    /// Number of outcomes that were sent.
    head: AtomicU64,
    /// The number of the listener, as in the doorbell's page.
    listener: AtomicU64,
    thread: Descriptor,
    caller: Descriptor,
    core: Mutex<Core>,
    ended: AtomicBool,
    /// `true` if outcomes are announced to no patient listener, as if a long task followed each.
    delays: bool,
    /// Number of waiting callers for which the collector thread sleeps. If it is 1, callers also
    /// look before they wait, which would multiply the interleavings of the other models.
    many: usize,
    /// `true` if there is a core for callers that spin.
    may_spin: bool,
    wake_queue: Arc<WakeQueue>,
}

struct Core {
    listeners: Listeners,
    /// Number of outcomes that were handled.
    taken: usize,
}

/// A descriptor that stays readable from a ring until it is drained.
#[derive(Default)]
struct Descriptor {
    readable: Mutex<bool>,
    changed: Condvar,
}

impl Descriptor {
    fn ring(&self) {
        *self.readable.lock() = true;
        self.changed.notify_one();
    }

    fn wait(&self) {
        let mut readable = self.readable.lock();
        while !*readable {
            readable = self.changed.wait(readable).expect("no panic");
        }
    }

    fn drain(&self) {
        *self.readable.lock() = false;
    }
}

impl Model {
    fn new(tasks: u64) -> Arc<Self> {
        Self::with_delays(tasks, false)
    }

    fn with_delays(tasks: u64, delays: bool) -> Arc<Self> {
        Self::with(tasks, delays, 3, false)
    }

    fn with(tasks: u64, delays: bool, many: usize, may_spin: bool) -> Arc<Self> {
        let model = Self {
            tasks: (0..tasks).map(|_| cell()).collect(),
            head: AtomicU64::new(0),
            listener: AtomicU64::new(0),
            thread: Descriptor::default(),
            caller: Descriptor::default(),
            core: Mutex::new(Core { listeners: Listeners::new(many), taken: 0 }),
            ended: AtomicBool::new(false),
            delays,
            many,
            may_spin,
            // Nobody watches it; it has a model of its own.
            wake_queue: WakeQueue::new(1, || {}),
        };
        model.listen(Listener::Thread);
        Arc::new(model)
    }

    /// The steps of a worker that sends all outcomes, as in `RemoteDoorbell::ring_later`.
    fn send_outcomes(&self) {
        for sent in 1..=self.tasks.len() as u64 {
            self.head.store(sent, Ordering::Release);
            fence(Ordering::SeqCst);
            match self.listener.load(Ordering::Relaxed) {
                1 => self.thread.ring(),
                2 => self.caller.ring(),
                _ => {}
            }
        }
    }

    /// Waits as `Shared::wait_for` does, and takes the outcome.
    fn wait_for(&self, task: usize) {
        Caller::new(self).wait_for(&*self.tasks[task], None);
        assert!(self.tasks[task].try_take().is_some(), "the wait ended early");
    }

    /// Takes turns as the collector thread does, until the end.
    fn take_turns(&self) {
        let mut turn = Turn::default();
        loop {
            let rung = turn.due().is_none();
            if rung {
                self.thread.wait();
            } else {
                thread::yield_now();
            }
            self.thread.drain();
            if self.ended.load(Ordering::Acquire) {
                break;
            }
            let mut deferred = Deferred::default();
            turn.look(self, rung, &mut deferred);
            self.run(&mut deferred);
        }
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.thread.ring();
    }
}

impl Rings for Model {
    type Locked<'a> = Locked<'a>;

    fn lock(&self) -> Locked<'_> {
        Locked { core: self.core.lock(), model: self }
    }

    fn wake_queue(&self) -> &Arc<WakeQueue> {
        &self.wake_queue
    }

    fn listen(&self, listener: Listener) {
        let value = match listener {
            Listener::Nobody => 0,
            Listener::Thread => 1,
            Listener::Caller => 2,
            Listener::PatientThread => 3,
            Listener::PatientCaller => 4,
        };
        if self.listener.load(Ordering::Relaxed) != value {
            self.listener.store(value, Ordering::Relaxed);
            if listener != Listener::Nobody {
                fence(Ordering::SeqCst);
            }
        }
    }

    /// The only deadlines are those of patient callers.
    fn sleep_at_the_doorbell(&self, deadline: Option<Instant>) -> io::Result<bool> {
        if deadline.is_some() {
            thread::yield_now();
            return Ok(false);
        }
        self.caller.wait();
        self.caller.drain();
        Ok(true)
    }

    /// Only makes turns begin earlier, which may begin at any time here.
    fn rely_on_callers(&self, _: bool) {}

    fn spin(
        &self,
        _: &Spin,
        mut look: impl FnMut(Monotonic) -> bool,
        is_over: impl Fn() -> bool,
    ) -> bool {
        look(Monotonic::ZERO) || is_over()
    }

    fn run(&self, deferred: &mut Deferred) {
        for waiters in deferred.take_work().unwrap_or_default().to_notify {
            let wakeups = waiters.notify();
            if wakeups.ring_doorbell {
                self.caller.ring();
            }
            wakeups.wakers.into_iter().for_each(Waker::wake);
        }
    }

    fn are_forked(&self) -> bool {
        false
    }

    fn give_up(&self, error: &dyn Display) {
        panic!("{error}");
    }
}

struct Locked<'a> {
    core: MutexGuard<'a, Core>,
    model: &'a Model,
}

impl LockedRings for Locked<'_> {
    fn listeners(&mut self) -> &mut Listeners {
        &mut self.core.listeners
    }

    fn look(&mut self, _: Option<Monotonic>, deferred: &mut Deferred) -> usize {
        let before = self.core.taken;
        let sent = self.model.head.load(Ordering::Acquire);
        while (self.core.taken as u64) < sent {
            let task = &self.model.tasks[self.core.taken];
            if let Some(waiters) = task.complete(Ok(value(1))).waiters {
                deferred.work().to_notify.push(waiters);
            }
            self.core.taken += 1;
        }
        self.core.taken - before
    }

    fn spin(&mut self, role: Role) -> Option<Spin> {
        let may_spin = self.model.may_spin;
        let spins = if role == Role::Waits { self.model.many == 1 } else { may_spin };
        spins.then(|| Spin { limit: Duration::ZERO, is_recorded: false, rings: Arc::new([]) })
    }

    fn patience(&self) -> Option<Duration> {
        self.model.delays.then_some(PATIENCE)
    }

    fn call_collector(&mut self) {}

    fn is_room_awaited(&self) -> bool {
        false
    }
}

fn spawn(model: &Arc<Model>, run: impl FnOnce(&Model) + 'static) -> thread::JoinHandle<()> {
    let model = Arc::clone(model);
    thread::spawn(move || run(&model))
}

/// Without a collector thread: a caller that leaves hands over to the other one.
#[test]
fn every_caller_gets_its_outcome_from_itself_or_another() {
    loom::model(|| {
        let model = Model::new(2);
        let worker = spawn(&model, Model::send_outcomes);
        let other = spawn(&model, |model| model.wait_for(1));
        model.wait_for(0);
        other.join().expect("the other caller");
        worker.join().expect("the worker");
    });
}

#[test]
fn an_outcome_that_arrives_during_a_turn_is_collected() {
    loom::model(|| {
        let model = Model::new(2);
        let worker = spawn(&model, Model::send_outcomes);
        let collector = spawn(&model, Model::take_turns);
        park_for(&*model.tasks[1], None);
        model.end();
        collector.join().expect("the collector thread");
        worker.join().expect("the worker");
    });
}

#[test]
fn an_outcome_for_which_nobody_listens_is_collected() {
    loom::model(|| {
        let model = Model::new(2);
        let worker = spawn(&model, Model::send_outcomes);
        let collector = spawn(&model, Model::take_turns);
        model.wait_for(0);
        park_for(&*model.tasks[1], None);
        model.end();
        collector.join().expect("the collector thread");
        worker.join().expect("the worker");
    });
}

/// A listener loses its patience once it has looked in vain, and is rung then.
#[test]
fn outcomes_announced_to_no_patient_listener_are_collected() {
    loom::model(|| {
        let model = Model::with_delays(2, true);
        let worker = spawn(&model, Model::send_outcomes);
        model.wait_for(1);
        worker.join().expect("the worker");
    });
    loom::model(|| {
        let model = Model::with_delays(1, true);
        let worker = spawn(&model, Model::send_outcomes);
        let collector = spawn(&model, Model::take_turns);
        park_for(&*model.tasks[0], None);
        model.end();
        collector.join().expect("the collector thread");
        worker.join().expect("the worker");
    });
}

/// The collector thread has seen a caller that comes and goes, so workers ring it later, too.
#[test]
fn an_outcome_after_a_caller_has_left_is_collected() {
    loom::model(|| {
        let model = Model::with_delays(3, true);
        let worker = spawn(&model, Model::send_outcomes);
        let collector = spawn(&model, Model::take_turns);
        model.wait_for(1);
        park_for(&*model.tasks[2], None);
        model.end();
        collector.join().expect("the collector thread");
        worker.join().expect("the worker");
    });
}

/// The caller hands over before it runs the waker of the first task, and may listen again.
#[test]
fn a_caller_that_ran_a_waker_gets_its_outcome() {
    struct OfFirst(Arc<Model>, ThreadId);
    impl Wake for OfFirst {
        fn wake(self: Arc<Self>) {
            let listens = self.0.core.lock().listeners.caller_listens();
            let is_the_caller = current().id() == self.1;
            assert!(!listens || !is_the_caller, "user code runs on the thread that listens");
        }
    }
    loom::model(|| {
        let model = Model::new(2);
        let waker = OfFirst(Arc::clone(&model), current().id());
        model.tasks[0].set_waker(&Waker::from(Arc::new(waker)));
        let worker = spawn(&model, Model::send_outcomes);
        let collector = spawn(&model, Model::take_turns);
        model.wait_for(1);
        assert!(!model.tasks[0].is_pending());
        model.end();
        collector.join().expect("the collector thread");
        worker.join().expect("the worker");
    });
}

/// Without a collector thread: a caller that is woken to take over, and has its outcome already,
/// wakes the next one.
#[test]
fn a_turn_to_listen_does_not_end_with_a_caller_that_leaves() {
    loom::model(|| {
        let model = Model::new(3);
        let others = [0, 2].map(|task| spawn(&model, move |model| model.wait_for(task)));
        let worker = spawn(&model, Model::send_outcomes);
        model.wait_for(1);
        for other in others {
            other.join().expect("another caller");
        }
        worker.join().expect("the worker");
    });
}
