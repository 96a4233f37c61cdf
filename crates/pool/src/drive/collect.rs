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

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use brigade_sys::arena::{ArgumentArena, ResultView, affordable};
use brigade_sys::wait::wait_readable;
use brigade_wire::link::ring::{HostEnd, spin_until};
use brigade_wire::ring::{Doorbell, Listener};
use brigade_wire::{FromWorker, WorkerId};
use tracing::warn;

use super::carry_out::Afterwards;
use super::outcome::{Facts, answer, finish_chunk, take_item};
use super::post::{Line, Wire};
use super::shared::{Core, Shared, now};
use crate::awaited::{Awaited, Sleeper, park_for, park_until};
use crate::cell::TaskCell;
use crate::machine::{Event, Machine};

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
}

impl Collecting {
    pub(super) fn new() -> std::io::Result<Self> {
        let doorbell = Doorbell::new()?;
        doorbell.listen(Listener::Thread);
        // A system that refuses so much address space has to do without.
        let arguments = affordable(ARENA, 1)
            .and_then(|bytes| ArgumentArena::create("brigade-arguments", bytes).ok());
        Ok(Self { doorbell, arguments, ended: AtomicBool::new(false) })
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
                Caller::new(self, &collecting.doorbell).wait_for(awaited, deadline);
            }
            _ => park_for(awaited, deadline),
        }
    }
}

/// A caller that waits for a task.
struct Caller<'a> {
    shared: &'a Shared,
    doorbell: &'a Doorbell,
    listens: bool,
    /// Whose thread this was before; see [`Caller::new`].
    owner: usize,
}

impl<'a> Caller<'a> {
    /// While a caller handles outcomes it is one of the pool's threads: a waker that runs on it, and drops the pool,
    /// must not wait for an end that this thread has to bring about.
    fn new(shared: &'a Shared, doorbell: &'a Doorbell) -> Self {
        Self { shared, doorbell, listens: false, owner: shared.own_this_thread() }
    }

    fn wait_for(&mut self, awaited: &impl Awaited, deadline: Option<Instant>) {
        while awaited.is_awaited()
            && deadline.is_none_or(|deadline| Instant::now() < deadline)
            // A waker may have forked.
            && !self.shared.is_forked()
        {
            if self.listens || self.begin_to_listen() {
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

    fn look_and_sleep(&self, awaited: &impl Awaited, deadline: Option<Instant>) {
        let look = || {
            let mut after = Afterwards::default();
            let mut core = self.shared.lock();
            let collected = core.collect(self.shared, &mut after);
            core.taken_by_callers += collected as u64;
            drop(core);
            after.run(self.shared);
            collected
        };
        if look() > 0 || !awaited.is_awaited() {
            return;
        }
        let may_spin = self.shared.lock().may_spin(self.shared, self.doorbell);
        if may_spin && spin_until(|| look() > 0) {
            return;
        }
        let mut after = Afterwards::default();
        let mut core = self.shared.lock();
        self.doorbell.listen(Listener::Caller);
        let collected = core.collect(self.shared, &mut after);
        drop(core);
        awaited.set_sleeper(Sleeper::AtTheDoorbell);
        if collected == 0 && awaited.is_awaited() {
            let left = deadline.map(|deadline| {
                let left = deadline.saturating_duration_since(Instant::now());
                brigade_sys::clock::now().saturating_add(left)
            });
            // An error here would come back at once, and the next look is right in any case.
            let _ = wait_readable(&[self.doorbell.caller().as_fd()], left);
        }
        awaited.wake_up();
        self.doorbell.listen(Listener::Nobody);
        self.doorbell.caller().drain();
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

/// The collector thread.
pub(super) fn run(shared: &Shared) {
    let Some(Collecting { doorbell, ended, .. }) = &shared.collecting else { return };
    let mut seen = 0;
    let mut until = None;
    loop {
        // Without `until` this sleeps until a worker rings, which it does only while no caller listens.
        if shared.is_forked()
            || wait_readable(&[doorbell.thread().as_fd()], until).is_err()
            || ended.load(Ordering::Acquire)
        {
            return;
        }
        doorbell.thread().drain();
        let mut after = Afterwards::default();
        let mut core = shared.lock();
        let callers_look = core.taken_by_callers != seen;
        seen = core.taken_by_callers;
        let quiet = until.take().is_some() && callers_look;
        if core.caller_listens {
            core.collect(shared, &mut after);
        } else if quiet {
            until = Some(brigade_sys::clock::now().saturating_add(QUIET));
        } else {
            doorbell.listen(Listener::Nobody);
            core.collect(shared, &mut after);
            if callers_look {
                until = Some(brigade_sys::clock::now().saturating_add(QUIET));
            } else {
                doorbell.listen(Listener::Thread);
                core.collect(shared, &mut after);
            }
        }
        core.thread_is_quiet = until.is_some();
        drop(core);
        after.run(shared);
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
                    warn!(pool = shared.config.name, %worker, problem, "worker broke the protocol");
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
