//! Drives a run on one thread: carries out the machine's actions, and waits for whatever comes
//! first.
//!
//! The thread waits in one place, on a poller over the processes (pidfds), their pipes and
//! the waker, until the machine's next deadline. It polls nothing.
//!
//! A token names slot, descriptor and generation. So an event that was fetched in the same batch as
//! the end of its job is not mistaken for an event of the next job on that slot.

mod attempt;
mod clock;
mod conclude;
mod feeder;
mod prepare;
mod strays;
mod streams;

use std::collections::HashSet;
use std::ffi::OsString;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use brigade_supervisor::GuardedLauncher;
use brigade_sys::clock::Monotonic;
use brigade_sys::poller::Poller;
use brigade_sys::process::{Ended, Exit, Signal, Usage};

use crate::client::{Client, Supply};
use crate::cores::Cores;
use crate::error::RunnerError;
use crate::event::{Event, Need, Reason};
use crate::load;
use crate::machine::{Action, Attempt, Machine, Settings};
use crate::memory;
use crate::outcome::StartFailure;
use crate::output::Output;
use crate::stopper::Stopper;
use crate::summary::Summary;

use attempt::{Collected, Live};
pub(crate) use clock::RunClock;
use feeder::Failure;
use prepare::Preparation;
use streams::Token;

/// The settings of a run.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) settings: Settings,
    pub(crate) cores: Option<Cores>,
    pub(crate) cores_per_job: usize,
    pub(crate) output: Output,
    pub(crate) live: bool,
    pub(crate) nice: i32,
    /// The soft limit on open descriptors that jobs get, if not that of this process.
    pub(crate) open_files: Option<u64>,
    pub(crate) least_memory: Option<u64>,
    pub(crate) most_load: Option<f64>,
    /// A variable for the number of a job's slot, from 0.
    pub(crate) slot_variable: Option<OsString>,
    pub(crate) adopts_orphans: bool,
}

pub(crate) struct Drive<'a> {
    config: Config,
    machine: Machine,
    client: &'a mut dyn Client,
    stopper: Stopper,
    /// Number of stop requests that were passed to the machine.
    handled_stops: u8,
    poller: Poller,
    /// The tokens of a batch of events; kept for its memory.
    ready: Vec<u64>,
    preparation: Preparation,
    live: Vec<Option<Live>>,
    /// Declared after `live`, and so dropped after the processes that it guards.
    launcher: GuardedLauncher,
    generation: u32,
    /// The groups of ended jobs whose killed members may not be dead yet.
    dying_groups: HashSet<u32>,
    clock: RunClock,
    start: Monotonic,
    buffer: Box<[u8]>,
    summary: Summary,
    failure: Option<RunnerError>,
    /// `true` once nothing is left to clean up.
    is_over: bool,
}

/// Number of bytes read from a pipe at once: the usual capacity of a pipe.
const READ_BYTES: usize = 64 * 1024;
/// The wait before memory and load are checked again. The kernel does not notify anybody when they
/// change.
const MACHINE_PAUSE: Duration = Duration::from_secs(1);

impl<'a> Drive<'a> {
    pub(crate) fn new(
        config: Config,
        stopper: Stopper,
        client: &'a mut dyn Client,
    ) -> Result<Self, RunnerError> {
        stopper.check_process()?;
        let slots = config.settings.slots.get();
        let mut poller = Poller::new().map_err(RunnerError::system("create an epoll instance"))?;
        poller
            .add(stopper.waker(), Token::WAKER.into())
            .map_err(RunnerError::system("watch the waker"))?;
        if config.adopts_orphans {
            brigade_sys::orphans::adopt().map_err(RunnerError::system("adopt orphans"))?;
        }
        // Before anything else is started: the guardian is a copy of this process, and should copy
        // little.
        let preparation = Preparation::new(config.slot_variable.clone())
            .map_err(RunnerError::system("open /dev/null"))?;
        let launcher =
            preparation.launcher(slots).map_err(RunnerError::system("start the guardian"))?;
        poller
            .add(launcher.guardian().pidfd(), Token::GUARDIAN.into())
            .map_err(RunnerError::system("watch the guardian"))?;
        let clock = RunClock::start();
        let start = clock.now();
        Ok(Self {
            machine: Machine::new(config.settings.clone(), start),
            config,
            client,
            stopper,
            handled_stops: 0,
            poller,
            ready: Vec::new(),
            launcher,
            preparation,
            live: (0..slots).map(|_| None).collect(),
            generation: 0,
            dying_groups: HashSet::new(),
            clock,
            start,
            buffer: vec![0; READ_BYTES].into(),
            summary: Summary::default(),
            failure: None,
            is_over: false,
        })
    }

    pub(crate) fn run(mut self) -> Result<Summary, RunnerError> {
        loop {
            // The client is user code, which may fork and return in both processes.
            self.stopper.check_process()?;
            match self.machine.next(self.clock.now()) {
                Action::Pull => self.pull(),
                Action::Start(slot, attempt) => self.start(slot, attempt),
                Action::Signal(slot, signal) => {
                    if let Some(live) = &self.live[slot] {
                        tracing::debug!(number = live.attempt.number, ?signal, "job signalled");
                        // Fails if the group has changed its user; SIGKILL of the leader comes
                        // last.
                        let _ = live.process.signal_group(signal);
                        // A stopped process (it wanted the terminal, say) handles the signal only
                        // once it continues.
                        if signal != Signal::Stop {
                            let _ = live.process.signal_group(Signal::Continue);
                        }
                    }
                }
                Action::Suspend => {
                    let Self { clock, client, .. } = &mut self;
                    clock.stand_still(|| client.event(Event::Suspended));
                    self.machine.resumed();
                }
                Action::Abandon(slot) => self.abandon(slot),
                Action::GiveUp(verdict) => {
                    self.conclude(None, verdict, self.clock.now(), Collected::default());
                }
                Action::Notify(notice) => self.notify(notice),
                Action::Wait(until) => self.wait(until)?,
                Action::Finish => break,
            }
        }
        if self.config.adopts_orphans {
            self.end_strays();
            self.stopper.check_process()?;
        }
        self.summary.wall = self.clock.now().saturating_since(self.start);
        self.is_over = true;
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(self.summary),
        }
    }

    fn pull(&mut self) {
        match self.client.next() {
            Supply::Job(job) => {
                self.machine.supplied(*job);
                self.machine.note_remaining(self.client.remaining());
            }
            Supply::Later => self.machine.supply_later(),
            Supply::End => self.machine.supply_ended(),
            Supply::Failed(error) => self.fail(RunnerError::Source(error)),
        }
    }

    /// Starts no more jobs. The run reports the first failure.
    fn fail(&mut self, failure: RunnerError) {
        self.failure.get_or_insert(failure);
        self.machine.drain(Reason::Failed);
    }

    fn start(&mut self, slot: usize, attempt: Attempt) {
        if let Some(need) = self.machine_lacks() {
            let until = self.clock.now().saturating_add(MACHINE_PAUSE);
            return self.machine.hold(slot, attempt, until, need);
        }
        let count = attempt.job.cores.unwrap_or(self.config.cores_per_job);
        let lease = match self.config.cores.as_mut().map(|cores| cores.lease(count, &self.stopper))
        {
            None => None,
            Some(Ok(Some(lease))) => Some(lease),
            Some(Ok(None)) => return self.machine.no_cores(slot, attempt),
            Some(Err(source)) => {
                let (number, job) = (attempt.number, attempt.job.to_string());
                self.machine.no_room(slot, attempt);
                return self.fail(RunnerError::NeverFits { number, job, source });
            }
        };
        // Creating the process counts towards the job's duration.
        let started = self.clock.now();
        match self.launch(slot, attempt.clone(), lease) {
            Ok(()) => {
                let live = self.live[slot].as_ref();
                let (pid, cores) =
                    live.map_or((0, Vec::new()), |live| (live.process.pid(), live.cpus.clone()));
                tracing::debug!(number = attempt.number, pid, ?cores, "job started");
                if !attempt.is_canary {
                    self.client.event(Event::Started {
                        number: attempt.number,
                        job: Arc::clone(&attempt.job),
                        attempt: attempt.nth,
                        slot: slot + 1,
                        host: None,
                        pid,
                        cores,
                        at: started.saturating_since(self.start),
                    });
                }
                self.machine.started(slot, attempt, started);
            }
            // The missing resource comes back when another job ends. One in step waits for this.
            Err(failure)
                if failure.is_shortage
                    && !attempt.job.is_in_step()
                    && self.live.iter().any(Option::is_some) =>
            {
                tracing::debug!(number = attempt.number, failure = failure.message, "job waits");
                self.machine.no_room(slot, attempt);
            }
            Err(failure) => self.not_started(slot, attempt, failure),
        }
    }

    /// Returns what a job must wait for, if the machine is too busy.
    fn machine_lacks(&self) -> Option<Need> {
        if self.config.least_memory.is_some_and(|least| memory::available() < least) {
            return Some(Need::Memory);
        }
        #[expect(clippy::cast_precision_loss, reason = "no machine has 2^53 threads")]
        let is_busy = |most: f64| load::runnable() as f64 >= most;
        self.config.most_load.is_some_and(is_busy).then_some(Need::Load)
    }

    fn not_started(&mut self, slot: usize, attempt: Attempt, failure: StartFailure) {
        let time = self.clock.now();
        let verdict = self.machine.start_failed(slot, attempt, failure, time);
        self.conclude(Some(slot), verdict, time, Collected::default());
    }

    fn wait(&mut self, until: Option<Monotonic>) -> Result<(), RunnerError> {
        let mut ready = mem::take(&mut self.ready);
        let until = until.map(|until| self.clock.in_system(until));
        self.poller.ready_until(until, &mut ready).map_err(RunnerError::system("wait for jobs"))?;
        for token in ready.drain(..).map(Token::from) {
            self.stopper.check_process()?;
            if token == Token::WAKER {
                self.woken();
            } else if token == Token::GUARDIAN {
                self.restart_guardian();
            } else if token.is_pidfd() {
                self.ended(token);
            } else {
                self.readable(token);
            }
        }
        self.ready = ready;
        Ok(())
    }

    fn woken(&mut self) {
        self.stopper.waker().drain();
        self.note_input_failures();
        if self.config.adopts_orphans {
            self.note_stopped();
            self.reap_adopted();
        }
        if self.stopper.take_suspension() {
            self.machine.suspend();
        }
        self.machine.supply_woken();
        self.machine.cores_freed();
        while self.handled_stops < self.stopper.requests() {
            self.handled_stops += 1;
            self.machine.stop(self.clock.now());
        }
    }

    /// Fails the run if the input of a job could not be read, and ends that job: what it does with
    /// the rest of its input missing is no success.
    fn note_input_failures(&mut self) {
        for Failure { number, path, error } in self.preparation.take_failures() {
            self.fail(RunnerError::Input { path, source: error });
            self.machine.input_failed(number, self.clock.now());
        }
    }

    /// Handles the end of a process: kills its group, reaps it and reads the rest of its output.
    fn ended(&mut self, token: Token) {
        let slot = token.slot();
        let Some(live) =
            self.live[slot].as_mut().filter(|live| live.generation == token.generation())
        else {
            return;
        };
        let ended = match self.launcher.try_end(slot, &live.process) {
            Ok(Some(ended)) => ended,
            Ok(None) => return,
            Err(error) => {
                // Other code in this program waits for any child. The status is lost, but the end
                // is not.
                tracing::warn!(%error, "a job's exit status was collected by other code in this process");
                Ended { exit: Exit::Unknown, usage: Usage::default() }
            }
        };
        let time = self.clock.now();
        // It may have ended because its input did.
        self.note_input_failures();
        self.drain(slot);
        self.unwatch(slot);
        let Some(live) = self.live[slot].take() else { return };
        let pid = live.process.pid();
        let collected = live.into_collected(ended.usage);
        if let Some(verdict) = self.machine.exited(slot, ended.exit, time) {
            self.conclude(Some(slot), verdict, time, collected);
        }
        if self.config.adopts_orphans {
            self.reap_adopted();
            self.note_dying_group(pid);
        }
    }
}

/// Cleans up after a run that ends by an error or a panic of the client:
/// leaves as little behind as a killed run.
impl Drop for Drive<'_> {
    fn drop(&mut self) {
        if self.is_over || self.stopper.check_process().is_err() {
            return;
        }
        // Kills each group and reaps its leader.
        self.live.clear();
        self.launcher.guardian().end_marked();
        if self.config.adopts_orphans {
            self.kill_strays(|_, _| ());
        }
    }
}
