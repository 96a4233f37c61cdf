//! Runs attempts on this machine, each in a process group of its own.
//!
//! The thread waits in one place, on a poller over the processes (pidfds), their pipes and
//! the waker, until the machine's next deadline. It polls nothing.
//!
//! A token names slot, descriptor and generation. So an event that was fetched in the same batch as
//! the end of its job is not mistaken for an event of the next job on that slot.

mod attempt;
mod feeder;
mod prepare;
mod strays;
mod streams;

use std::collections::HashSet;
use std::mem;
use std::time::Duration;

use brigade_supervisor::Launcher;
use brigade_sys::clock::Monotonic;
use brigade_sys::guardian::Guardian;
use brigade_sys::orphans;
use brigade_sys::poller::Poller;
use brigade_sys::process::{Ended, Exit, Signal, Usage};

use super::{Drive, Place, RunConfig};
use crate::error::RunnerError;
use crate::event::Need;
use crate::load;
use crate::machine::{self, Attempt};
use crate::memory;
use crate::outcome::{Ending, StartFailure};
use crate::stopper::Stopper;

use attempt::Live;
use feeder::Failure;
use prepare::Preparation;
use streams::Token;

/// This machine.
#[derive(Debug)]
pub(crate) struct Local {
    config: RunConfig,
    stopper: Stopper,
    poller: Poller,
    /// The tokens of a batch of events; kept for its memory.
    ready: Vec<u64>,
    preparation: Preparation,
    own_peak: memory::OwnPeak,
    live: Vec<Option<Live>>,
    launcher: Launcher,
    /// Declared after `live`, and so dropped after the processes that it guards.
    guardian: Guardian,
    generation: u32,
    /// The children that this process had before the run, such as those of a shell that it has
    /// replaced. They are no strays.
    foreign: HashSet<u32>,
    /// The groups of ended jobs whose killed members may not be dead yet.
    dying_groups: HashSet<u32>,
    buffer: Box<[u8]>,
    /// `true` once nothing is left to clean up.
    is_over: bool,
}

/// Number of bytes read from a pipe at once: the usual capacity of a pipe.
const READ_BYTES: usize = 64 * 1024;
/// The wait before memory and load are checked again. The kernel does not notify anybody when they
/// change.
const MACHINE_PAUSE: Duration = Duration::from_secs(1);

impl Local {
    pub(crate) fn new(config: RunConfig, stopper: Stopper) -> Result<Self, RunnerError> {
        stopper.check_process()?;
        let slots = config.settings.slots.get();
        let poller = Poller::new().map_err(RunnerError::system("create an epoll instance"))?;
        poller
            .add(stopper.waker(), Token::WAKER.0)
            .map_err(RunnerError::system("watch the waker"))?;
        let mut foreign = HashSet::new();
        if config.adopts_orphans {
            orphans::adopt().map_err(RunnerError::system("adopt orphans"))?;
            foreign.extend(orphans::Child::all().iter().map(orphans::Child::pid));
        }
        // Before anything else is started: the guardian is a copy of this process, and should copy
        // little.
        let preparation = Preparation::new(config.slot_variable.clone(), stopper.clone())
            .map_err(RunnerError::system("open /dev/null"))?;
        let (launcher, guardian) =
            preparation.launcher(slots).map_err(RunnerError::system("start the guardian"))?;
        poller
            .add(guardian.pidfd(), Token::GUARDIAN.0)
            .map_err(RunnerError::system("watch the guardian"))?;
        Ok(Self {
            config,
            stopper,
            poller,
            ready: Vec::new(),
            preparation,
            own_peak: memory::OwnPeak::new(),
            live: (0..slots).map(|_| None).collect(),
            launcher,
            guardian,
            generation: 0,
            foreign,
            dying_groups: HashSet::new(),
            buffer: vec![0; READ_BYTES].into(),
            is_over: false,
        })
    }

    /// Returns what a job must wait for, if the machine is too busy.
    fn lacks(&self) -> Option<Need> {
        if self.config.least_memory.is_some_and(|least| memory::available() < least) {
            return Some(Need::Memory);
        }
        #[expect(clippy::cast_precision_loss, reason = "no machine has 2^53 threads")]
        let is_busy = |most: f64| load::runnable() as f64 >= most;
        self.config.most_load.is_some_and(is_busy).then_some(Need::Load)
    }
}

impl Place for Local {
    fn start(drive: &mut Drive<'_, Self>, slot: usize, attempt: Attempt) {
        let place = &mut drive.place;
        if let Some(need) = place.lacks() {
            let until = drive.clock.now().saturating_add(MACHINE_PAUSE);
            return drive.report(machine::Event::Lacking { slot, attempt, need, until });
        }
        let count = attempt.job.cores.unwrap_or(place.config.cores_per_job);
        let cores = place.config.cores.as_mut();
        let lease = match cores.map(|cores| cores.lease(count, &place.stopper)) {
            None => None,
            Some(Ok(Some(lease))) => Some(lease),
            Some(Ok(None)) => return drive.report(machine::Event::NoCores(slot, attempt)),
            Some(Err(source)) => {
                let (number, job) = (attempt.number, attempt.job.to_string());
                drive.report(machine::Event::NoRoom(slot, attempt));
                return drive.fail(RunnerError::NeverFits { number, job, source });
            }
        };
        let share = match place.config.resources.take(&attempt.job) {
            _ if attempt.is_canary => None,
            Ok(Some(share)) => Some(share),
            Ok(None) => return drive.report(machine::Event::NoRoom(slot, attempt)),
            Err(error) => {
                let failure = StartFailure::other(error.to_string());
                return drive.report(machine::Event::StartFailed(slot, attempt, failure));
            }
        };
        // Creating the process counts towards the job's duration.
        let started = drive.clock.now();
        match place.launch(slot, attempt.clone(), lease, share) {
            Ok(()) => {
                let live = place.live[slot].as_ref();
                let (pid, cores) =
                    live.map_or((0, Vec::new()), |live| (live.process.pid(), live.cpus.clone()));
                tracing::debug!(number = attempt.number, pid, ?cores, "job started");
                if !attempt.is_canary {
                    let at = started.saturating_since(drive.start);
                    drive.client.event(attempt.started(slot, None, (pid, cores), at));
                }
                drive.report_at(started, machine::Event::Started(slot, attempt));
            }
            // The missing resource comes back when another job ends. One in step waits for this.
            Err(failure)
                if failure.is_shortage
                    && !attempt.job.is_in_step()
                    && place.live.iter().any(Option::is_some) =>
            {
                tracing::debug!(number = attempt.number, failure = failure.message, "job waits");
                drive.report(machine::Event::NoRoom(slot, attempt));
            }
            Err(failure) => drive.report(machine::Event::StartFailed(slot, attempt, failure)),
        }
    }

    fn signal(&mut self, slot: usize, signal: Signal) {
        let Some(live) = &self.live[slot] else { return };
        tracing::debug!(number = live.attempt.number, ?signal, "job signalled");
        // Fails if the group has changed its user; SIGKILL of the leader comes last.
        let _ = live.process.signal_group(signal);
        // A stopped process (it wanted the terminal, say) handles the signal only once it
        // continues.
        if signal != Signal::Stop {
            let _ = live.process.signal_group(Signal::Continue);
        }
    }

    /// Returns the cores of the attempt, which would never become free otherwise.
    fn abandon(drive: &mut Drive<'_, Self>, slot: usize) {
        let time = drive.clock.now();
        drive.drain(slot);
        drive.place.unwatch(slot);
        let Some(live) = drive.place.live[slot].take() else { return };
        tracing::warn!(number = live.attempt.number, "a job cannot be killed and is still running");
        drive.collected.insert(slot, live.abandon());
        drive.report_at(time, machine::Event::Ended(slot, Ending::NotKilled));
    }

    fn wait(drive: &mut Drive<'_, Self>, until: Option<Monotonic>) -> Result<(), RunnerError> {
        let mut ready = mem::take(&mut drive.place.ready);
        let poller = &mut drive.place.poller;
        poller.ready_until(until, &mut ready).map_err(RunnerError::system("wait for jobs"))?;
        for token in ready.drain(..).map(Token) {
            drive.stopper.check_process()?;
            if token == Token::WAKER {
                drive.waker_ready();
            } else if token == Token::GUARDIAN {
                drive.place.restart_guardian();
            } else if token.is_pidfd() {
                drive.ended(token);
            } else {
                drive.readable(token);
            }
        }
        drive.place.ready = ready;
        Ok(())
    }

    fn finish(drive: &mut Drive<'_, Self>) -> Result<(), RunnerError> {
        let Drive { place, client, stopper, .. } = drive;
        if place.config.adopts_orphans {
            place.kill_strays(|event| client.event(event));
            stopper.check_process()?;
        }
        place.is_over = true;
        Ok(())
    }
}

impl Drive<'_, Local> {
    fn waker_ready(&mut self) {
        self.stopper.waker().drain();
        self.note_input_failures();
        if self.place.config.adopts_orphans {
            self.note_stopped();
            self.place.reap_adopted();
        }
        self.report(machine::Event::CoresFreed);
        self.woken();
    }

    /// Fails the run if the input of a job could not be read, and ends that job: what it does with
    /// the rest of its input missing is no success.
    fn note_input_failures(&mut self) {
        for Failure { number, path, error } in self.place.preparation.feeder.take_failures() {
            self.fail(RunnerError::Input { path, source: error });
            self.report(machine::Event::InputFailed(number));
        }
    }

    /// Handles the end of a process: kills its group, reaps it and reads the rest of its output.
    fn ended(&mut self, token: Token) {
        let (slot, place) = (token.slot(), &mut self.place);
        let live = place.live[slot].as_ref();
        let Some(live) = live.filter(|live| live.generation == token.generation()) else { return };
        let ended = match live.process.try_end(place.guardian.slot(slot)) {
            Ok(Some(ended)) => ended,
            Ok(None) => return,
            Err(error) => {
                // Other code in this program waits for any child. The status is lost, but the end
                // is not.
                place.guardian.clear(slot);
                tracing::warn!(%error, "a job's exit status was collected by other code in this process");
                Ended { exit: Exit::Unknown, usage: Usage::default() }
            }
        };
        let time = self.clock.now();
        // It may have ended because its input did.
        self.note_input_failures();
        self.drain(slot);
        self.place.unwatch(slot);
        let Some(live) = self.place.live[slot].take() else { return };
        let pid = live.process.pid();
        let ending = match live.confined.exceeded(&ended) {
            None => ended.exit.into(),
            Some(limit) => Ending::LimitExceeded { limit },
        };
        self.collected.insert(slot, live.into_outcome(ended.usage));
        self.report_at(time, machine::Event::Ended(slot, ending));
        if self.place.config.adopts_orphans {
            self.place.reap_adopted();
            self.place.note_dying_group(pid);
        }
    }
}

/// Cleans up after a run that ends by an error or a panic of the client:
/// leaves as little behind as a killed run.
impl Drop for Local {
    fn drop(&mut self) {
        if self.is_over || self.stopper.check_process().is_err() {
            return;
        }
        // Kills each group and reaps its leader.
        self.live.clear();
        self.guardian.end_marked();
        if self.config.adopts_orphans {
            self.kill_strays(|_| ());
        }
    }
}
