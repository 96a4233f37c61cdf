//! The one thread of a run: it does what the machine says, and waits for whatever comes first.
//!
//! It waits in one place, on an epoll over the processes (pidfds), their pipes and the waker, until the machine's next
//! time. Nothing is looked at before it has something to say.
//!
//! A token names slot, descriptor and generation: an event that was fetched together with the end of its job is not taken
//! for one of the job that follows on the slot.

mod attempt;
mod duplicates;
mod prepare;
mod strays;
mod streams;

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

use brigade_sys::clock::{Monotonic, now};
use brigade_sys::guardian::Guardian;
use brigade_sys::launch::{Ended, Launcher, Usage};
use brigade_sys::process::{Exit, Signal};
use rustix::event::{Timespec, epoll};

use crate::cores::Cores;
use crate::error::RunnerError;
use crate::event::{Event, Reason};
use crate::machine::{Action, Attempt, Machine, Notice, Settings};
use crate::memory;
use crate::outcome::{Ending, Outcome, StartFailure};
use crate::output::Output;
use crate::source::{Source, Supply};
use crate::stopper::Stopper;
use crate::summary::Summary;

use attempt::{Live, Remains};
pub use duplicates::check as check_duplicates;
use prepare::Preparation;
use streams::Token;

/// What the driver is told once.
#[derive(Debug)]
pub(crate) struct Conduct {
    pub(crate) settings: Settings,
    pub(crate) cores: Option<Cores>,
    pub(crate) cores_per_job: std::num::NonZeroUsize,
    pub(crate) output: Output,
    pub(crate) live: bool,
    pub(crate) nice: i32,
    pub(crate) least_memory: Option<u64>,
    pub(crate) adopts_orphans: bool,
}

pub(crate) struct Drive<'a> {
    conduct: Conduct,
    machine: Machine,
    source: &'a mut dyn Source,
    tell: &'a mut dyn FnMut(Event<'_>),
    stopper: Stopper,
    /// How often the stop was heard.
    heard: u8,
    epoll: OwnedFd,
    launcher: Launcher,
    preparation: Preparation,
    live: Vec<Option<Live>>,
    /// Goes after what it guards.
    guardian: Guardian,
    generation: u32,
    start: Monotonic,
    buffer: Box<[u8]>,
    summary: Summary,
    failure: Option<RunnerError>,
    /// Whether nothing is left to look after.
    is_over: bool,
}

/// How much is read from a pipe at once: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;
/// How many events are fetched at once.
const EVENTS: usize = 64;
/// How long to wait before memory is looked at again. The kernel tells nobody when it gets free.
const MEMORY_PAUSE: Duration = Duration::from_secs(1);

impl<'a> Drive<'a> {
    pub(crate) fn new(
        conduct: Conduct,
        stopper: Stopper,
        source: &'a mut dyn Source,
        tell: &'a mut dyn FnMut(Event<'_>),
    ) -> Result<Self, RunnerError> {
        stopper.check_process()?;
        let slots = conduct.settings.slots.get();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(RunnerError::system("make an epoll"))?;
        let waker = epoll::EventData::new_u64(Token::WAKER.into());
        epoll::add(&epoll, stopper.waker(), waker, epoll::EventFlags::IN)
            .map_err(RunnerError::system("wait for a waker"))?;
        if conduct.adopts_orphans {
            brigade_sys::orphans::adopt().map_err(RunnerError::system("adopt orphans"))?;
        }
        // Before anything else is started: it copies this process, and should copy little.
        let preparation = Preparation::new().map_err(RunnerError::system("open /dev/null"))?;
        let guardian = Guardian::start(slots, preparation.mark())
            .map_err(RunnerError::system("start the guardian"))?;
        let death = epoll::EventData::new_u64(Token::GUARDIAN.into());
        epoll::add(&epoll, guardian.pidfd(), death, epoll::EventFlags::IN)
            .map_err(RunnerError::system("watch the guardian"))?;
        let start = now();
        Ok(Self {
            machine: Machine::new(conduct.settings.clone(), start),
            conduct,
            source,
            tell,
            stopper,
            heard: 0,
            epoll,
            launcher: Launcher::new(),
            guardian,
            preparation,
            live: (0..slots).map(|_| None).collect(),
            generation: 0,
            start,
            buffer: vec![0; READ_BYTES].into(),
            summary: Summary::default(),
            failure: None,
            is_over: false,
        })
    }

    pub(crate) fn run(mut self) -> Result<Summary, RunnerError> {
        loop {
            // The source and the closure are code of users, which may fork and return in both processes.
            self.stopper.check_process()?;
            match self.machine.next(now()) {
                Action::Pull => self.pull(),
                Action::Start(slot, attempt) => self.start(slot, attempt),
                Action::Signal(slot, signal) => {
                    if let Some(live) = &self.live[slot] {
                        tracing::debug!(number = live.attempt.number, ?signal, "job signalled");
                        // A group that cannot be signalled has changed its user; SIGKILL of the leader comes last.
                        let _ = live.leader.signal_group(signal);
                        // One that has stopped (it wanted the terminal, say) hears nothing else before it goes on.
                        let _ = live.leader.signal_group(Signal::Continue);
                    }
                }
                Action::Abandon(slot) => self.abandon(slot),
                Action::GiveUp(verdict) => {
                    self.conclude(None, verdict, now(), Remains::default());
                }
                Action::Tell(notice) => self.tell_notice(notice),
                Action::Wait(until) => self.wait(until)?,
                Action::Finish => break,
            }
        }
        if self.conduct.adopts_orphans {
            self.end_strays();
            self.stopper.check_process()?;
        }
        self.summary.wall = now().saturating_since(self.start);
        self.is_over = true;
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(self.summary),
        }
    }

    fn pull(&mut self) {
        match self.source.next() {
            Supply::Job(job) => {
                self.machine.supplied(*job);
                self.machine.note_remaining(self.source.remaining());
            }
            Supply::Later => self.machine.supply_later(),
            Supply::End => self.machine.supply_ended(),
            Supply::Failed(error) => self.fail(RunnerError::Source(error)),
        }
    }

    /// No more is started; the first failure is what the run says in the end.
    fn fail(&mut self, failure: RunnerError) {
        self.failure.get_or_insert(failure);
        self.machine.drain(Reason::Failed);
    }

    fn start(&mut self, slot: usize, attempt: Attempt) {
        if self.conduct.least_memory.is_some_and(|least| memory::available() < least) {
            let until = now().saturating_add(MEMORY_PAUSE);
            return self.machine.hold(slot, attempt, until);
        }
        let count = attempt.job.cores.unwrap_or(self.conduct.cores_per_job).get();
        let lease = match self.conduct.cores.as_mut().map(|cores| cores.lease(count, &self.stopper))
        {
            None => None,
            Some(Ok(Some(lease))) => Some(lease),
            Some(Ok(None)) => return self.machine.no_room(slot, attempt),
            Some(Err(source)) => {
                let (number, job) = (attempt.number, attempt.job.to_string());
                self.machine.no_room(slot, attempt);
                return self.fail(RunnerError::NeverFits { number, job, source });
            }
        };
        // Making the process is a part of what the job takes.
        let started = now();
        match self.launch(slot, attempt.clone(), lease) {
            Ok(()) => {
                let live = self.live[slot].as_ref();
                let (pid, cores) =
                    live.map_or((0, [].as_slice()), |live| (live.leader.pid(), &live.cpus));
                tracing::debug!(number = attempt.number, pid, ?cores, "job started");
                if !attempt.is_canary {
                    (self.tell)(Event::Started {
                        number: attempt.number,
                        job: &attempt.job,
                        attempt: attempt.nth,
                        slot: slot + 1,
                        pid,
                        cores,
                        at: started.saturating_since(self.start),
                    });
                }
                self.machine.started(slot, attempt, started);
            }
            // What is missing comes back when another job ends.
            Err(failure) if failure.is_shortage && self.live.iter().any(Option::is_some) => {
                tracing::debug!(number = attempt.number, failure = failure.message, "job waits");
                self.machine.no_room(slot, attempt);
            }
            Err(failure) => self.not_started(slot, attempt, failure),
        }
    }

    fn not_started(&mut self, slot: usize, attempt: Attempt, failure: StartFailure) {
        let time = now();
        let verdict = self.machine.start_failed(slot, attempt, failure, time);
        self.conclude(Some(slot), verdict, time, Remains::default());
    }

    fn wait(&mut self, until: Option<Monotonic>) -> Result<(), RunnerError> {
        let mut events = [MaybeUninit::uninit(); EVENTS];
        let timeout = until.map(|until| timespec(until.saturating_since(now())));
        let fetched = match epoll::wait(&self.epoll, &mut events, timeout.as_ref()) {
            Ok((fetched, _)) => fetched,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(RunnerError::system("wait for jobs")(error)),
        };
        for event in fetched {
            self.stopper.check_process()?;
            let token = Token::from(event.data.u64());
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
        Ok(())
    }

    fn woken(&mut self) {
        self.stopper.waker().drain();
        if self.conduct.adopts_orphans {
            self.reap_adopted();
        }
        self.machine.supply_woken();
        self.machine.cores_freed();
        let asked = self.stopper.asked();
        while self.heard < asked {
            self.heard += 1;
            self.machine.stop(now());
        }
    }

    /// A process has ended: its group is killed, it is reaped, and what it wrote is taken.
    fn ended(&mut self, token: Token) {
        let slot = token.slot();
        let Some(live) =
            self.live[slot].as_mut().filter(|live| live.generation == token.generation())
        else {
            return;
        };
        let ended = match live.leader.try_reap(self.guardian.slot(slot)) {
            Ok(Some(ended)) => ended,
            Ok(None) => return,
            Err(error) => {
                // Somebody else in this program waits for any child: how it ended is lost, that it ended is not.
                tracing::warn!(%error, "a job's exit status was taken by somebody else");
                if let Some(slot) = self.guardian.slot(slot) {
                    slot.clear();
                }
                Ended { exit: Exit::Unknown, usage: Usage::default() }
            }
        };
        let time = now();
        self.drain(slot);
        self.ignore(slot);
        let Some(live) = self.live[slot].take() else { return };
        let remains = live.into_remains(ended.usage);
        if let Some(verdict) = self.machine.exited(slot, ended.exit, time) {
            self.conclude(Some(slot), verdict, time, remains);
        }
        if self.conduct.adopts_orphans {
            self.reap_adopted();
        }
    }

    fn conclude(
        &mut self,
        slot: Option<usize>,
        verdict: crate::machine::Verdict,
        time: Monotonic,
        remains: Remains,
    ) {
        let attempt = verdict.attempt;
        tracing::debug!(number = attempt.number, ending = %verdict.ending, "job ended");
        if attempt.is_canary {
            let prelude = attempt.job.prelude.clone();
            if verdict.ending.is_success() {
                (self.tell)(Event::CanaryPassed { prelude: prelude.as_deref() });
            } else if verdict.ending != Ending::Stopped {
                let output = remains.last_words();
                let ending = verdict.ending;
                self.fail(RunnerError::Canary { prelude, ending, output });
            }
            return;
        }
        if verdict.is_retried {
            (self.tell)(Event::Retrying {
                number: attempt.number,
                job: &attempt.job,
                attempt: attempt.nth,
                ending: &verdict.ending,
            });
            return;
        }
        let started = time.saturating_since(self.start).saturating_sub(verdict.wall);
        let outcome = Outcome {
            number: attempt.number,
            job: attempt.job,
            ending: verdict.ending,
            attempts: attempt.nth,
            slot: slot.map_or(0, |slot| slot + 1),
            cores: remains.cores,
            started,
            wall: verdict.wall,
            user: remains.usage.user,
            system: remains.usage.system,
            peak_memory: remains.usage.peak_memory,
            stdout: remains.stdout,
            stderr: remains.stderr,
        };
        self.summary.count(&outcome);
        (self.tell)(Event::Finished(outcome));
        if verdict.is_halting {
            self.tell_notice(Notice::Halting(Reason::Halted));
        }
    }

    fn tell_notice(&mut self, notice: Notice) {
        let event = match notice {
            Notice::Halting(reason) => {
                self.summary.halted = Some(reason);
                Event::Halting(reason)
            }
            Notice::Grace { running, left } => Event::Grace { running, left },
            Notice::Signalled { running, signal } => Event::Signalled { running, signal },
            Notice::Tick => Event::Tick,
        };
        (self.tell)(event);
    }
}

/// A run that ends by a panic (of the closure that is told, of the source) or by an error leaves as little behind as one
/// that was killed.
impl Drop for Drive<'_> {
    fn drop(&mut self) {
        if self.is_over || self.stopper.check_process().is_err() {
            return;
        }
        // Kills each group and reaps its leader.
        self.live.clear();
        self.guardian.end_marked();
        if self.conduct.adopts_orphans {
            self.kill_strays(|_, _| ());
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
