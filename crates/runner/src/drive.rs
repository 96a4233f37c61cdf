//! Drives a run on one thread: carries out the machine's actions, and waits for whatever comes
//! first.
//!
//! The loop is the same wherever attempts run. A [`Place`] starts and ends them, and waits until
//! something happens to one of them.

mod clock;
mod conclude;
mod local;
mod remote;

use std::collections::HashMap;
use std::ffi::OsString;
use std::mem;
use std::sync::Arc;

use brigade_sys::clock::Monotonic;
use brigade_sys::process::Signal;

use crate::client::{Client, Supply};
use crate::confinement::Confinement;
use crate::cores::Cores;
use crate::error::RunnerError;
use crate::event::{Event, Reason};
use crate::machine::{self, Action, Attempt, Machine, Settings};
use crate::needs::Resources;
use crate::outcome::Outcome;
use crate::output::Output;
use crate::stopper::Stopper;
use crate::summary::Summary;

use clock::RunClock;
pub(crate) use local::Local;
pub(crate) use remote::Hosts;

/// The settings of a run.
#[derive(Debug, Default)]
pub(crate) struct RunConfig {
    pub(crate) settings: Settings,
    pub(crate) cores: Option<Cores>,
    pub(crate) cores_per_job: usize,
    pub(crate) resources: Resources,
    pub(crate) output: Output,
    pub(crate) live: bool,
    pub(crate) nice: i32,
    /// The soft limit on open descriptors that jobs get, if not that of this process.
    pub(crate) open_files: Option<u64>,
    pub(crate) least_memory: Option<u64>,
    pub(crate) most_load: Option<f64>,
    /// A variable for the number of a job's slot, from 0.
    pub(crate) slot_variable: Option<OsString>,
    pub(crate) confinement: Option<Arc<Confinement>>,
    pub(crate) adopts_orphans: bool,
}

/// A run whose attempts run in the place `P`.
pub(crate) struct Drive<'a, P> {
    machine: Machine,
    /// The actions of the machine that have not been carried out.
    actions: Vec<Action>,
    client: &'a mut dyn Client,
    stopper: Stopper,
    /// Number of stop requests that were passed to the machine.
    handled_stops: u8,
    /// The outcomes of attempts that are over and have not been concluded, without the verdict, by
    /// slot.
    collected: HashMap<usize, Outcome>,
    clock: RunClock,
    start: Monotonic,
    summary: Summary,
    failure: Option<RunnerError>,
    place: P,
}

/// A place in which attempts run.
pub(crate) trait Place: Sized {
    /// Starts an attempt on a slot. Reports to the machine whether it has started.
    fn start(drive: &mut Drive<'_, Self>, slot: usize, attempt: Attempt);

    /// Sends a signal to the attempt on a slot.
    fn signal(&mut self, slot: usize, signal: Signal);

    /// Stops waiting for the end of the attempt on a slot, and reports that to the machine.
    fn abandon(drive: &mut Drive<'_, Self>, slot: usize);

    /// Waits until something happens or the time has come, and reports it to the machine.
    fn wait(drive: &mut Drive<'_, Self>, until: Option<Monotonic>) -> Result<(), RunnerError>;

    /// Handles the notice that no more jobs start.
    fn halting(&mut self) {}

    /// Cleans up after the last attempt.
    fn finish(_: &mut Drive<'_, Self>) -> Result<(), RunnerError> {
        Ok(())
    }
}

impl<'a, P: Place> Drive<'a, P> {
    pub(crate) fn new(
        settings: Settings,
        stopper: Stopper,
        client: &'a mut dyn Client,
        place: P,
    ) -> Self {
        let clock = RunClock::start();
        let start = clock.now();
        Self {
            machine: Machine::new(settings, start),
            actions: Vec::new(),
            client,
            stopper,
            handled_stops: 0,
            collected: HashMap::new(),
            clock,
            start,
            summary: Summary::default(),
            failure: None,
            place,
        }
    }

    pub(crate) fn run(mut self) -> Result<Summary, RunnerError> {
        'run: loop {
            // The client is user code, which may fork and return in both processes.
            self.stopper.check_process()?;
            self.report(machine::Event::Ready);
            if self.actions.is_empty() {
                let until = self.machine.next_deadline().map(|until| self.clock.in_system(until));
                P::wait(&mut self, until)?;
            }
            while !self.actions.is_empty() {
                for action in mem::take(&mut self.actions) {
                    self.stopper.check_process()?;
                    if matches!(action, Action::Finish) {
                        break 'run;
                    }
                    self.carry_out(action);
                }
            }
        }
        P::finish(&mut self)?;
        self.summary.wall = self.clock.now().saturating_since(self.start);
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(self.summary),
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Pull => self.pull(),
            Action::Start(slot, attempt) => P::start(self, slot, attempt),
            Action::Signal(slot, signal) => self.place.signal(slot, signal),
            Action::Suspend => {
                let Self { clock, client, .. } = self;
                clock.stand_still(|| client.event(Event::Suspended));
                self.report(machine::Event::Resumed);
            }
            Action::Abandon(slot) => P::abandon(self, slot),
            Action::Conclude(slot, verdict) => self.conclude(slot, verdict),
            Action::Notify(notice) => self.notify(notice),
            Action::Finish => {}
        }
    }

    /// Reports an event of this moment to the machine.
    fn report(&mut self, event: machine::Event) {
        self.report_at(self.clock.now(), event);
    }

    fn report_at(&mut self, time: Monotonic, event: machine::Event) {
        self.machine.handle(time, event, &mut self.actions);
    }

    fn pull(&mut self) {
        match self.client.next() {
            Supply::Job(job) => {
                let remaining = self.client.remaining();
                self.report(machine::Event::Supplied { job, remaining });
            }
            Supply::Later => self.report(machine::Event::SupplyLater),
            Supply::End => self.report(machine::Event::SupplyEnded),
            Supply::Failed(error) => self.fail(RunnerError::Source(error)),
        }
    }

    /// Starts no more jobs. The run reports the first failure.
    fn fail(&mut self, failure: RunnerError) {
        self.failure.get_or_insert(failure);
        self.report(machine::Event::Drain(Reason::Failed));
    }

    /// Passes on what others ask of the run, after its waker has been drained.
    fn woken(&mut self) {
        if self.stopper.take_suspension() {
            self.report(machine::Event::Suspend);
        }
        self.report(machine::Event::SupplyWoken);
        while self.handled_stops < self.stopper.requests() {
            self.handled_stops += 1;
            self.report(machine::Event::Stop);
        }
    }
}
