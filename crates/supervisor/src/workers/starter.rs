//! Starts the processes of workers: executes the program, or forks it from a server.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brigade_sys::clock::Monotonic;
use brigade_sys::inherited::Source;
use brigade_sys::process::Process;
use brigade_wire::handshake::WorkerProgram;
use brigade_wire::slots::SlotTable;
use brigade_wire::version::{MARKER, PROTOCOL_VERSION};

use crate::command_line::CommandLine;
use crate::error::{Unusable, unless_unusable};
use crate::launcher::{LaunchSettings, Launcher, Prepared, of_worker};
use crate::note;
use crate::workers::fork_server::{ForkError, ForkServer, Surroundings};
use crate::workers::process_env::limit_threads;
use crate::workers::settings::{Settings, Start};
use crate::workers::supervised::Supervised;
use crate::workers::supervisor::Supervisor;
use crate::workers::worker_process::WorkerProcess;

/// The spawner's means to start processes.
pub(crate) struct Processes {
    /// The way that was found to be possible.
    mode: Start,
    server: Option<ForkServer>,
    /// Processes that were started by executing the program.
    executed: usize,
    /// Workers that are ordered, and come after the one that is started.
    pub(crate) ordered: usize,
    /// Workers that take tasks and may not have run yet, and the times until which they have to.
    pub(crate) silent: Vec<(Arc<WorkerProcess>, Arc<SlotTable>, Monotonic)>,
    /// Says what a process inherits from this thread.
    inherited: Source,
}

/// A pool executes this many workers before it starts a server, which takes as long as a worker.
const EXECUTED_FIRST: usize = 2;

/// If more workers than these are ordered, waiting for the server is faster than executing them.
const WORTH_WAITING: usize = 4;

/// A process that was started, with the program of the server if it was forked from one.
type StartedProcess = (Process, Option<WorkerProgram>);

/// A worker that was forked, or `None` if it has to be executed.
type Forked = io::Result<Option<StartedProcess>>;

impl Processes {
    pub(crate) fn new(settings: &Settings) -> Self {
        let is_known_by_others = settings.start == Start::Auto && settings.sandbox.is_some();
        let mode = if is_known_by_others { Start::Exec } else { settings.start };
        Self {
            mode,
            server: None,
            executed: 0,
            ordered: 0,
            silent: Vec::new(),
            inherited: Source::default(),
        }
    }

    /// Starts the process of a worker, with these streams, in control groups with these `doors`.
    pub(crate) fn start(
        &mut self,
        owner: &impl Supervised,
        worker: &WorkerProcess,
        cores: Option<usize>,
        streams: [BorrowedFd<'_>; 3],
        doors: &[File],
    ) -> io::Result<StartedProcess> {
        let settings = owner.settings();
        let mut line = settings.command.clone().unwrap_or_else(CommandLine::of_this_program);
        settings.env.apply(&mut line);
        let marker = format!("{PROTOCOL_VERSION}:{}", std::process::id());
        line.set(MARKER.into(), Some(marker.into()));
        if let Some(cores) = cores {
            limit_threads(&mut line, cores);
        }
        // The server has none of them, because workers of all slots are its copies.
        let of_slot = settings.env.of_slot(worker.worker().slot);
        let of_slot = of_slot.map_err(|error| io::Error::other(Unusable(error.to_string())))?;
        let common = line.clone();
        for (key, value) in of_slot {
            line.set(key, Some(value));
        }
        if self.forks(settings) {
            let mut launcher = launcher(settings);
            let file = prepare(&mut launcher, &common)?.file_id();
            let prepared = prepare(&mut launcher, &line)?;
            let around = Surroundings {
                supervisor: owner.supervisor(),
                settings,
                worker,
                streams,
                doors,
                environment: launcher.environment_of(&prepared),
                line: &common,
                inherited: self.inherited.now()?,
                file,
            };
            if let Some(started) = self.fork(&around)? {
                return Ok(started);
            }
        }
        let (process, _) = execute(settings, &line, &of_worker(streams, doors))?;
        self.executed += 1;
        Ok((process, None))
    }

    /// Returns `true` if the next start may wait until a server serves.
    pub(crate) fn may_wait(&self, settings: &Settings) -> bool {
        let serves = self.server.as_ref().is_some_and(|server| server.program.is_some());
        !serves && self.forks(settings) && self.waits_for_the_server(settings)
    }

    /// Ends the server.
    pub(crate) fn end(&mut self, supervisor: &Supervisor) {
        if let Some(server) = self.server.take() {
            server.retire(supervisor);
        }
    }

    /// Returns `true` if the next worker is forked, or would be if there were a server. A pool that
    /// needs no further workers has no server.
    fn forks(&self, settings: &Settings) -> bool {
        match self.mode {
            Start::Exec => false,
            Start::Fork => true,
            Start::Auto => {
                self.executed >= EXECUTED_FIRST
                    || self.ordered > WORTH_WAITING
                    || self.needs_a_server(settings)
            }
        }
    }

    /// Returns `true` if the start waits until the server serves. Otherwise the worker is executed
    /// meanwhile.
    fn waits_for_the_server(&self, settings: &Settings) -> bool {
        let are_many = self.executed >= EXECUTED_FIRST && self.ordered > WORTH_WAITING;
        are_many || self.needs_a_server(settings)
    }

    /// Returns `true` if no worker is started without a server.
    fn needs_a_server(&self, settings: &Settings) -> bool {
        self.mode == Start::Fork || settings.setup.preload.is_some()
    }

    /// Forks a worker.
    fn fork(&mut self, around: &Surroundings<'_>) -> Forked {
        let Surroundings { supervisor, settings, .. } = *around;
        let is_suspect = supervisor.is_server_suspect.swap(false, Ordering::AcqRel);
        let outdated = self.server.as_ref().and_then(|server| server.outdated(around));
        let why = outdated.or(is_suspect.then_some("a worker of it did not start"));
        if let Some(why) = why
            && let Some(server) = self.server.take()
        {
            note!(supervisor.output, DEBUG, cause = why, "fork server replaced");
            server.retire(supervisor);
        }
        let waits = self.waits_for_the_server(settings);
        let server = match &mut self.server {
            Some(server) => server,
            none => none.insert(ForkServer::launch(around)?),
        };
        let program = server.wait_until_serving(around, waits);
        match program.and_then(|program| Ok((server.fork(around)?, Some(program)))) {
            Ok(started) => Ok(Some(started)),
            Err(ForkError::NotYet) => Ok(None),
            Err(ForkError::Refused(error)) => Err(error),
            Err(ForkError::Unsuitable { reason, threads }) => {
                self.end(supervisor);
                self.unsuitable(supervisor, reason, threads)
            }
            Err(ForkError::Gone) => self.failed(around, None),
            Err(ForkError::Broken(reason)) => self.failed(around, Some(reason)),
        }
    }

    /// Ends the server, which is of no use. `reason` is `None` if it has ended by itself.
    fn failed(&mut self, around: &Surroundings<'_>, reason: Option<String>) -> Forked {
        let Surroundings { supervisor, settings, .. } = *around;
        let Some(server) = self.server.take() else { return Ok(None) };
        let (is_foreign, pid) = (server.is_foreign_and_new(settings), server.process.pid());
        let cause = server.end(supervisor, reason);
        if is_foreign {
            // It may do as a worker what it does not do as a server.
            let cause = format!("`worker_command` does not run a fork server: {cause}");
            return self.unsuitable(supervisor, cause, 1);
        }
        let text = format!("the fork server (pid {pid}) failed: {cause}");
        note!(supervisor.output, WARN, pid, cause, "fork server failed");
        if self.needs_a_server(settings) { Err(io::Error::other(text)) } else { Ok(None) }
    }

    /// Executes workers from now on, if that is allowed.
    fn unsuitable(&mut self, supervisor: &Supervisor, cause: String, threads: u64) -> Forked {
        if self.mode == Start::Fork {
            let reason = format!("workers cannot be forked: {cause}; use `Start::Auto`");
            return Err(io::Error::other(Unusable(reason)));
        }
        self.mode = Start::Exec;
        if threads > 1 {
            note!(
                supervisor.output,
                WARN,
                cause,
                "workers are executed, not forked: a worker had {threads} threads before `init`"
            );
        } else {
            note!(supervisor.output, INFO, cause, "workers are executed, not forked");
        }
        Ok(None)
    }
}

/// Executes the program of the workers. Returns the process and its whole environment.
pub(crate) fn execute(
    settings: &Settings,
    line: &CommandLine,
    start: &LaunchSettings<'_>,
) -> io::Result<(Process, Vec<u8>)> {
    let mut launcher = launcher(settings);
    let prepared = prepare(&mut launcher, line)?;
    let process = launcher.launch(None, &prepared, start);
    let process = process.map_err(|error| unless_unusable(line, error))?;
    Ok((process, launcher.environment_of(&prepared)))
}

/// Returns a launcher for one start, because the host may change its environment.
fn launcher(settings: &Settings) -> Launcher {
    let is_clear = settings.sandbox.as_ref().is_some_and(|sandbox| sandbox.clears_environment);
    if is_clear { Launcher::without_environment() } else { Launcher::new(&[]) }
}

fn prepare<'a>(launcher: &mut Launcher, line: &'a CommandLine) -> io::Result<Prepared<'a>> {
    launcher.prepare(line).map_err(|error| io::Error::other(Unusable(error.to_string())))
}
