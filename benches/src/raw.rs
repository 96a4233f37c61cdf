//! Measures the raw limits: two processes, or threads, that communicate without a pool.
//!
//! The other process is this executable in the role of an [`Echo`].

mod callers;
mod cores;
mod forks;
mod grain;
mod memory;
mod objects;
mod queue;
mod shared_memory;
mod spawn;
mod stream;

pub(crate) use forks::run as copy_often;

use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use brigade_sys::process::{Process, self_command};

use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::role::{PARENT, ROLE};
use crate::sample::{busy_trips, parked_trips, record_trips};
use crate::section::Section;

pub(crate) fn measure(section: Section, load: &Load, report: &mut Report) -> Outcome<()> {
    match section {
        Section::Latency => latency(load, report),
        Section::Grain => {
            grain::measure(load, report);
            Ok(())
        }
        Section::Callers => {
            callers::measure(load, report);
            Ok(())
        }
        Section::Payload => {
            memory::measure(load, report);
            Ok(())
        }
        Section::Cluster => {
            queue::measure(load, report);
            Ok(())
        }
        Section::Start => spawn::measure_start(load, report),
        Section::Crash => spawn::measure_one(load, report),
        Section::Fresh => forks::measure(load, report),
        _ => Err("there is no raw limit for this".into()),
    }
}

/// Measures ping-pongs between two cores, and one on a single core. Calls follow each other without
/// a pause, except those of `futex_paused`: they have the same pause as parked round trips through
/// a pool, because a core that has slept longer takes longer to wake up.
fn latency(load: &Load, report: &mut Report) -> Outcome<()> {
    let [here, there] = cores::two()?;
    cores::pin(here)?;
    let spinning = shared_memory::PingPong::start(Echo::Spin, there);
    record_trips(report, "spin", spinning.and_then(|mut pair| busy_trips(load, || pair.trip())));
    for (name, core) in [("futex", there), ("futex_one_core", here)] {
        let asleep = shared_memory::PingPong::start(Echo::Futex, core);
        record_trips(report, name, asleep.and_then(|mut pair| busy_trips(load, || pair.trip())));
    }
    let asleep = shared_memory::PingPong::start(Echo::Futex, there);
    let paused = asleep.and_then(|mut pair| parked_trips(load, || pair.trip()));
    record_trips(report, "futex_paused", paused);
    let socket = stream::PingPong::over_sockets(there);
    record_trips(report, "socket", socket.and_then(|mut pair| busy_trips(load, || pair.trip())));
    let pipe = stream::PingPong::over_pipes(there);
    record_trips(report, "pipe", pipe.and_then(|mut pair| busy_trips(load, || pair.trip())));
    Ok(())
}

/// The other end of a ping-pong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Echo {
    /// Spins on a word in shared memory.
    Spin,
    /// Waits on a futex in shared memory.
    Futex,
    /// Reads from and writes to its standard input, a socket.
    Socket,
    /// Reads from its standard input and writes to its standard output, both pipes.
    Pipe,
}

const ECHOES: [(&str, Echo); 4] =
    [("spin", Echo::Spin), ("futex", Echo::Futex), ("socket", Echo::Socket), ("pipe", Echo::Pipe)];

impl Echo {
    pub(crate) fn named(name: &str) -> Option<Self> {
        ECHOES.iter().find(|(known, _)| *known == name).map(|(_, echo)| *echo)
    }

    /// Answers messages, pinned to `core`, until the parent exits.
    pub(crate) fn run(self, core: usize) -> Outcome<()> {
        cores::pin(core)?;
        match self {
            Self::Spin | Self::Futex => shared_memory::echo(self),
            Self::Socket | Self::Pipe => stream::echo(self),
        }
    }

    /// Starts the process. It is killed when the returned value is dropped or this process exits.
    fn start(self, core: usize, input: OwnedFd, output: Option<OwnedFd>) -> Outcome<Process> {
        let mut command =
            in_role(ECHOES.iter().find(|(_, echo)| *echo == self).map_or("", |e| e.0));
        command.arg(core.to_string()).stdin(Stdio::from(input));
        if let Some(output) = output {
            command.stdout(Stdio::from(output));
        }
        Ok(Process::spawn(&mut command)?)
    }
}

/// Returns the command that starts this executable in another role.
fn in_role(role: &str) -> Command {
    let mut command = self_command();
    command.args([ROLE, role]).env(PARENT, std::process::id().to_string());
    command
}
