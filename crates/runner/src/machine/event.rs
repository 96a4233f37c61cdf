//! The events that a run's machine handles, and the actions that it asks its driver for.

use std::time::Duration;

use brigade_base::Monotonic;
use brigade_sys::process::Signal;

use super::{Attempt, Verdict};
use crate::event::{Event as Notice, Need, Reason};
use crate::job::Job;
use crate::outcome::{Ending, StartFailure};

/// An event for the machine. A slot is a number from 0.
#[derive(Debug)]
pub(crate) enum Event {
    /// All actions have been carried out, or a deadline has passed. Only this event starts a job,
    /// so that none starts which an earlier event has prevented.
    Ready,
    /// The answer to `Pull`: a job, and the number of jobs still to come, if it is known.
    Supplied { job: Box<Job>, remaining: Option<u64> },
    /// The answer to `Pull`: no job yet. `Woken` follows.
    SupplyLater,
    /// The answer to `Pull`: no more jobs.
    SupplyEnded,
    /// The client may have a job again.
    SupplyWoken,
    /// Others may have returned cores.
    CoresFreed,
    /// The answer to `Start`: the attempt runs.
    Started(usize, Attempt),
    /// The answer to `Start`: it cannot run.
    StartFailed(usize, Attempt, StartFailure),
    /// The answer to `Start`: its cores are leased to others. It is the first to get those that
    /// become free.
    NoCores(usize, Attempt),
    /// The answer to `Start`: it lacks what running jobs have.
    NoRoom(usize, Attempt),
    /// The answer to `Start`: it lacks something of the machine. Nothing starts before `until`.
    Lacking { slot: usize, attempt: Attempt, need: Need, until: Monotonic },
    /// An attempt is over as far as its process shows it: it was reaped, or survives SIGKILL and
    /// was abandoned. Its cores are free again.
    Ended(usize, Ending),
    /// An attempt has ended on another machine.
    Reported { slot: usize, ending: Ending, wall: Duration },
    /// An attempt was withdrawn before it began on another machine.
    Withdrawn(usize),
    /// The input of the job with this number cannot be read.
    InputFailed(u64),
    /// The run is to stop. The second time, all jobs are killed at once.
    Stop,
    /// The run is to pause.
    Suspend,
    /// The answer to `Suspend`: the pause is over.
    Resumed,
    /// No more jobs are to start. Running ones may finish.
    Drain(Reason),
}

/// An action for the driver to carry out, in the order in which they were asked for.
#[derive(Debug)]
pub(crate) enum Action {
    /// Take a job from the client, and report the answer.
    Pull,
    /// Start this attempt on this slot, and report whether it started.
    Start(usize, Attempt),
    /// Send a signal to the process group on a slot.
    Signal(usize, Signal),
    /// Emit an event about the run as a whole.
    Notify(Notice),
    /// Emit the event of a pause, and report when the handler returns.
    Suspend,
    /// Stop waiting for the attempt on a slot: it has survived SIGKILL for some time.
    Abandon(usize),
    /// Report the end of an attempt: of one on a slot, or of one that will not start.
    Conclude(Option<usize>, Verdict),
    /// Return: the run is over.
    Finish,
}
