//! Who reads the workers' answers when they come through shared memory.
//!
//! No thread stands between a worker and the caller that waits for it. Whoever waits for a task *listens*: it looks into
//! the rings of all workers, handles what is there for everybody, and sleeps on the pool's doorbell when there is nothing.
//! One caller listens at a time; others sleep until their task is completed, or until the listener leaves and one of them
//! takes over. When no caller waits, the collector thread is the one that the workers ring.
//!
//! Protocol (all of it under the core's lock, except sleeping and spinning):
//! - `listen(..)` comes before a last look at the rings; a worker publishes before it looks who listens. So an answer is
//!   either seen by that look or announced by a ring of the bell.
//! - `caller_listens` is true from the moment at which a caller begins to look until it hands over; only then may it, and
//!   nobody else, change who is to be rung.
//! - The collector thread sleeps on its own descriptor all the time. It is rung only while no caller listens. After a ring it
//!   stays responsible for a while without asking to be rung if callers turn up all the time (a loop of submits): then it
//!   looks again after [`QUIET`], so that a busy caller is not slowed down by waking a thread for each answer.
//! - A caller hands over before it runs code of users, and does all that follows from a look before it sleeps.
//! - Who cannot wait for descriptors breaks the pool and ends its workers, so that the reaper brings all outcomes.

mod caller;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use brigade_sys::arena::{ArgumentArena, ResultView, affordable};
use brigade_sys::clock::Monotonic;
use brigade_sys::poller::Poller;
use brigade_wire::link::ring::HostEnd;
use brigade_wire::ring::{Doorbell, Listener};
use brigade_wire::{FromWorker, WorkerId};
use tracing::{Level, warn};

use super::afterwards::Afterwards;
use super::outcome::{Facts, answer, finish_chunk, take_item};
use super::post::{Line, Wire};
use super::shared::{Core, Shared, now};
use crate::awaited::{Awaited, park_for};
use crate::cell::TaskCell;
use crate::machine::{Event, Machine};
use caller::Caller;

/// How long the collector thread leaves the looking to callers that do it anyway.
const QUIET: Duration = Duration::from_millis(1);

/// Address space of each arena, where it is not limited. Memory is taken only as far as it is used.
pub(super) const ARENA: usize = 16 << 30;

/// What the listening callers and the collector thread share besides the core.
pub(super) struct Collecting {
    pub(super) doorbell: Doorbell,
    /// For large arguments; without it they go through the rings in pieces.
    pub(super) arguments: Option<Arc<ArgumentArena>>,
    pub(super) ended: AtomicBool,
    /// Where the caller that listens sleeps, and where the collector thread does.
    callers_sleep: Poller,
    thread_sleeps: Poller,
}

impl Collecting {
    pub(super) fn new() -> std::io::Result<Self> {
        let doorbell = Doorbell::new()?;
        doorbell.listen(Listener::Thread);
        // A system that refuses so much address space has to do without.
        let arguments = affordable(ARENA, 1)
            .and_then(|bytes| ArgumentArena::create("brigade-arguments", bytes).ok());
        let (mut callers_sleep, mut thread_sleeps) = (Poller::new()?, Poller::new()?);
        callers_sleep.add(doorbell.caller(), 0)?;
        thread_sleeps.add(doorbell.thread(), 0)?;
        Ok(Self {
            doorbell,
            arguments,
            ended: AtomicBool::new(false),
            callers_sleep,
            thread_sleeps,
        })
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.doorbell.thread().wake();
    }
}

impl Shared {
    /// Where large arguments are placed.
    pub(crate) fn arguments(&self) -> Option<&Arc<ArgumentArena>> {
        self.collecting.as_ref()?.arguments.as_ref().filter(|_| !self.is_forked())
    }

    /// Handles what is there, now.
    pub(crate) fn collect(&self) {
        if self.is_forked() {
            return;
        }
        let mut after = Afterwards::default();
        self.lock().collect(self, &mut after);
        after.run(self);
    }

    /// Waits until what is awaited is there, or the deadline has passed; not at all in a fork of the process.
    pub(crate) fn wait_for(&self, awaited: &impl Awaited, deadline: Option<Instant>) {
        if self.is_forked() {
            return;
        }
        match &self.collecting {
            Some(collecting) if awaited.is_awaited() => {
                Caller::new(self, collecting).wait_for(awaited, deadline);
            }
            _ => park_for(awaited, deadline),
        }
    }
}

/// The collector thread.
pub(super) fn run(shared: &Shared) {
    let Some(collecting) = &shared.collecting else {
        // Attendants read the answers. What is left is code of users.
        while shared.foreign.wait() {
            shared.run_waiting_foreign();
        }
        return;
    };
    let mut turn = Turn { seen: 0, until: None };
    loop {
        let result = catch_unwind(AssertUnwindSafe(|| {
            while turn.take(shared, collecting)? {}
            Ok::<(), std::io::Error>(())
        }));
        match result {
            Ok(Ok(())) => break,
            Ok(Err(error)) => {
                shared.give_up("wait for answers", &error);
                break;
            }
            // The panic hook has said where. Workers are asked to ring again in the next turn.
            Err(_) => {
                shared.give_up("collect answers", &"the thread that does has panicked");
                turn.until = Some(brigade_sys::clock::now().saturating_add(QUIET));
            }
        }
    }
    if !shared.is_forked() {
        shared.foreign.end();
        shared.run_waiting_foreign();
    }
}

/// What the collector thread keeps from one turn to the next.
struct Turn {
    seen: u64,
    until: Option<Monotonic>,
}

impl Turn {
    /// False when the pool has ended.
    fn take(&mut self, shared: &Shared, collecting: &Collecting) -> std::io::Result<bool> {
        let Collecting { doorbell, ended, thread_sleeps, .. } = collecting;
        // Without `until` this sleeps until a worker rings, which it does only while no caller listens.
        if shared.is_forked() {
            return Ok(false);
        }
        thread_sleeps.wait(self.until)?;
        // The wake-up is taken first: one that comes after this look is there for the next turn.
        doorbell.thread().drain();
        if ended.load(Ordering::Acquire) {
            return Ok(false);
        }
        let mut after = Afterwards::default();
        let mut core = shared.lock();
        let callers_look = core.taken_by_callers != self.seen;
        self.seen = core.taken_by_callers;
        let quiet = self.until.take().is_some() && callers_look;
        if core.caller_listens {
            core.collect(shared, &mut after);
        } else if quiet {
            self.until = Some(brigade_sys::clock::now().saturating_add(QUIET));
        } else {
            doorbell.listen(Listener::Nobody);
            core.collect(shared, &mut after);
            if callers_look {
                self.until = Some(brigade_sys::clock::now().saturating_add(QUIET));
            } else {
                doorbell.listen(Listener::Thread);
                core.collect(shared, &mut after);
            }
        }
        core.thread_is_quiet = self.until.is_some();
        drop(core);
        after.run(shared);
        shared.run_waiting_foreign();
        Ok(true)
    }
}

impl Core {
    /// Handles all answers that are there; how many.
    pub(super) fn collect(&mut self, shared: &Shared, after: &mut Afterwards) -> usize {
        if shared.collecting.is_none() {
            return 0;
        }
        let mut collected = 0;
        for slot in 0..self.posts.len() {
            collected += self.collect_slot(slot, shared, after);
        }
        if collected > 0 {
            self.handle(now(), Event::Balance, Facts::Nothing, shared, after);
        }
        if let Some(collecting) = &shared.collecting {
            self.allow_spinning(shared, &collecting.doorbell);
        }
        // The answers of one worker may have sent tasks to another.
        for line in self.posts.iter_mut().filter_map(|post| post.as_mut()?.line.as_mut()) {
            line.announce();
        }
        collected
    }

    /// Handles the answers of one worker.
    pub(super) fn collect_slot(
        &mut self,
        slot: usize,
        shared: &Shared,
        after: &mut Afterwards,
    ) -> usize {
        let mut collected = 0;
        let mut time = None;
        while let Some(Some(post)) = self.posts.get_mut(slot) {
            let worker = post.id;
            let Some(Line { wire: Wire::Ring(end), results, broken, .. }) = &mut post.line else {
                break;
            };
            // Behind what made no sense nothing counts any more.
            if *broken || !end.has_more() {
                break;
            }
            let next = next_event(worker, end, results.as_ref(), &self.machine, &mut collected);
            let (event, facts) = match next {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(problem) => {
                    *broken = true;
                    after.note(Level::WARN, move |pool| {
                        warn!(pool, %worker, problem, "worker broke the protocol");
                    });
                    let event = Event::Misbehaved { worker };
                    self.handle(now(), event, Facts::Nothing, shared, after);
                    break;
                }
            };
            collected += 1;
            let time = *time.get_or_insert_with(now);
            self.handle(time, event, facts, shared, after);
        }
        if let Some(Some(post)) = self.posts.get_mut(slot)
            && let Some(Wire::Ring(end)) = post.line.as_mut().map(|line| &mut line.wire)
            && (collected > 0 || end.is_in_the_middle())
        {
            end.made_room();
        }
        collected
    }

    /// Whether there is a core for each process that has something to do, and for us; workers are told. Not while so
    /// many other callers wait that those keep the cores busy in turn: what is looked for comes out of their time.
    fn allow_spinning(&self, shared: &Shared, doorbell: &Doorbell) -> bool {
        let allowed =
            self.machine.busy_workers() < shared.cores && self.waiting_callers.len() < shared.cores;
        doorbell.allow_spinning(allowed);
        allowed
    }

    /// Whether a caller may look for a while before it sleeps. Not right after it has woken a worker: that one is often
    /// placed on the caller's core, where it cannot run before the caller sleeps.
    fn may_spin(&mut self, shared: &Shared, doorbell: &Doorbell) -> bool {
        self.allow_spinning(shared, doorbell) && !std::mem::take(&mut self.woke_worker)
    }
}

type Next = Result<Option<(Event<Arc<TaskCell>>, Facts)>, String>;

/// The next answer, copied out of the ring; what had to wait for room is sent on first. Answers to items concern nobody
/// but their chunk, so they are only counted.
fn next_event(
    worker: WorkerId,
    end: &mut HostEnd,
    results: Option<&Arc<ResultView>>,
    machine: &Machine<Arc<TaskCell>>,
    items: &mut usize,
) -> Next {
    end.pump().map_err(|error| error.to_string())?;
    loop {
        if !end.advance().map_err(|error| error.to_string())? {
            return Ok(None);
        }
        return match FromWorker::decode(end.message()).map_err(|error| error.to_string())? {
            FromWorker::Item(item) => {
                take_item(machine.due(worker), item, results)?;
                *items += 1;
                continue;
            }
            FromWorker::Finished(finished) => {
                finish_chunk(machine.due(worker), &finished)?;
                let facts = Facts::Answer(answer(finished.outcome, results)?);
                let brigade_wire::Finished { task, attempt, run_time, worn, .. } = finished;
                Ok(Some((Event::Finished { worker, task, attempt, run_time, worn }, facts)))
            }
            FromWorker::Skipped { task, attempt, .. } => {
                Ok(Some((Event::Skipped { worker, task, attempt }, Facts::Nothing)))
            }
        };
    }
}
