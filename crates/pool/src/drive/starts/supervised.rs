//! Handles what happens to the processes of workers.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brigade_scheduler::{Event, StartFailure};
use brigade_supervisor::{
    Connected, Settings, SharedMemory, StartError, Supervised, Supervisor, WorkerProcess, note,
};
use brigade_sys::clock::{Monotonic, now};
use brigade_wire::WorkerId;

use crate::cores;
use crate::drive::collect::collecting::{ARENA, Collecting};
use crate::drive::owner::{self, Role};
use crate::drive::shared::Shared;
use crate::drive::{deaths::death, large::copy, outcome::EventData, starts::attendant};

impl Supervised for Shared {
    fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    fn settings(&self) -> &Settings {
        &self.config.supervisor
    }

    fn is_forked(&self) -> bool {
        Self::is_forked(self)
    }

    fn max_workers(&self) -> usize {
        self.target.load(Ordering::Relaxed) + self.config.scheduler.spare_workers
    }

    fn shared_memory(&self) -> Option<SharedMemory<'_>> {
        let Collecting { doorbell, arguments, .. } = self.collecting.as_ref()?;
        let (arguments, terms) = (arguments.as_deref(), self.config.buffer_terms());
        // The limits on private memory do not count the arena.
        let most = self.config.supervisor.limits.memory_limit();
        let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(ARENA);
        Some(SharedMemory { doorbell, arguments, most_results: ARENA.min(most), terms })
    }

    fn start<P>(
        &self,
        worker: WorkerId,
        start: impl FnOnce(Option<usize>) -> io::Result<P>,
    ) -> io::Result<P> {
        let cores = self.config.cores.as_ref();
        let Some(lease) = cores.and_then(|cores| cores.of(worker.slot)) else {
            return start(None);
        };
        let on_fewer = |requested, effective| {
            note!(
                self.supervisor.output, WARN, %worker, %requested, %effective,
                "worker may run only on some of its cores"
            );
        };
        cores::start_pinned(&lease, on_fewer, |cores| start(Some(cores)))
    }

    fn thread_began(&self) {
        self.own_this_thread();
        owner::take_role(Role::Driver);
    }

    fn start_failed(&self, worker: WorkerId, error: StartError) {
        let StartError { is_permanent: permanent, reason } = error;
        let failure = StartFailure { permanent, reason: reason.into() };
        self.remove_dead(worker, Event::StartFailed { worker, failure }, EventData::Nothing);
    }

    fn connected(&self, process: &Arc<WorkerProcess>, connected: Connected) {
        attendant::run(self, process, connected);
    }

    fn thread_panicked(&self, process: &Arc<WorkerProcess>) {
        death::kill_orphaned(self, process);
    }

    /// The current task is the last one that the worker has started, because the outcomes of
    /// earlier ones may still be under way.
    fn section_began(&self, worker: WorkerId, due: Monotonic) {
        self.with_core(|core, deferred| {
            let Some(connection) = core.connection(worker) else { return };
            let table = &connection.table;
            let occupants = core.scheduler.occupants(worker).into_iter().rev();
            let mut occupied = occupants.map(|(ring_index, ..)| ring_index);
            let running = occupied.find(|ring_index| table.running_since(*ring_index).is_some());
            if let Some(ring_index) = running {
                let event = Event::SectionBegun { worker, ring_index, due };
                core.handle(now(), event, EventData::Nothing, self, deferred);
            }
        });
    }

    /// The worker is killed, and its table of task states is no longer trusted.
    fn misbehaved(&self, worker: WorkerId, problem: &str) {
        self.with_core(|core, deferred| {
            // Outcomes that it has written before belong to tasks that have nothing to do with
            // this.
            core.collect_slot(worker.slot as usize, &mut None, self, deferred);
            core.break_off(worker, problem.to_owned(), self, deferred);
        });
    }

    fn crashed(&self, process: &WorkerProcess) -> bool {
        let worker = process.worker();
        self.with_core(|core, deferred| {
            core.handle(now(), Event::Crashed { worker }, EventData::Nothing, self, deferred);
            let at_once = core.scheduler.may_report_crash(worker);
            if at_once {
                death::interrupt_crashed(core, worker);
            }
            at_once
        })
    }

    /// This has to be read before the outcomes. If the process sends an outcome at the last moment,
    /// the attempt then counts as interrupted; in the other order, the task would seem never to
    /// have started.
    fn gave_up_on(&self, process: &WorkerProcess) {
        death::interrupt(&mut self.lock(), process.worker());
    }

    /// Has everything handled that the worker had written, and then its death. Over an ipc link the
    /// attendant does that when it comes to the end mark.
    fn died(&self, process: &Arc<WorkerProcess>) {
        let worker = process.worker();
        if self.collecting.is_some() {
            self.with_core(|core, deferred| {
                core.collect_slot(worker.slot as usize, &mut None, self, deferred)
            });
            return death::report(self, process);
        }
        let end_mark = self.lock().connection_mut(worker).and_then(|it| it.end_mark.take());
        if let Some(end_mark) = end_mark {
            end_mark.send();
        }
    }

    fn reaped(&self, process: &WorkerProcess) {
        let worker = process.worker();
        self.give_cores_back(worker, |core, deferred| {
            core.handle(now(), Event::Reaped { worker }, EventData::Nothing, self, deferred);
        });
    }

    /// The worker is left behind, its death is reported as if it had died, and the pool breaks,
    /// because other workers would fail in the same way: this process has fewer privileges than
    /// when it started them.
    fn could_not_kill(&self, process: &Arc<WorkerProcess>, error: io::Error) {
        let (worker, pid) = (process.worker(), process.pid().unwrap_or(0));
        let reason = format!(
            "{worker} (pid {pid}) cannot be killed and was left behind: {error}; a program must drop privileges before it builds a pool"
        );
        note!(
            self.supervisor.output, WARN, %worker, pid, %error,
            "cannot kill a worker, which was left behind"
        );
        self.left_behind.lock().push(pid);
        self.step(Event::Break { reason: reason.into() }, EventData::Nothing);
        process.leave_behind();
        self.supervisor.reaper.wake();
    }

    fn work(&self, work: Box<dyn Any + Send>) {
        copy::copy_left(work, self);
    }

    /// Takes the lock only once, to do what is due and to read the next deadline: while tasks are
    /// being submitted the lock is nearly always held, and each time this thread sleeps for it, a
    /// submitter has to wake it.
    fn tick(&self) -> Option<Monotonic> {
        self.with_core(|core, deferred| {
            if core.scheduler.next_deadline().is_some_and(|due| due <= now()) {
                // A task that has finished in time, but whose outcome was not collected yet, must
                // not cost its worker's life.
                core.collect(None, self, deferred);
                core.handle(now(), Event::Tick, EventData::Nothing, self, deferred);
            }
            let next = core.scheduler.next_deadline();
            core.next_tick = next;
            self.supervisor.reaper.sleep_until(next);
            // This thread knows the deadline and need not be woken for it.
            deferred.let_reaper_sleep();
            next
        })
    }

    fn gave_up(&self, part: &str, problem: &dyn fmt::Display) {
        self.give_up(part, problem);
    }
}
