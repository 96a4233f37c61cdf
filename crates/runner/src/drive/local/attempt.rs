//! Running attempts, as the driver holds them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use brigade_cores::CoreLease;
use brigade_supervisor::{Capture, CommandLine, LaunchSettings, OutputPipe};
use brigade_sys::descriptors::above_streams;
use brigade_sys::launch::{LaunchError, LaunchStage};
use brigade_sys::process::{Process, Usage};

use super::Local;
use super::streams::{PIDFD, StreamState, Token};
use crate::confinement::Confined;
use crate::job::Job;
use crate::machine::Attempt;
use crate::needs::ResourceShare;
use crate::outcome::{Outcome, StartFailure};
use crate::output::Output;

/// A running attempt. Dropping it kills its process group, reaps it and returns its cores
/// and resources.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) attempt: Attempt,
    pub(super) process: Process,
    pub(super) generation: u32,
    /// Standard output and standard error.
    pub(super) streams: [StreamState; 2],
    pub(super) cpus: Vec<u32>,
    /// `true` once it was reported that the job wants the terminal.
    pub(super) wants_terminal: bool,
    /// The largest memory of this process when it started the job.
    own_memory: u64,
    pub(super) confined: Confined,
    /// Returns the cores when dropped.
    #[expect(dead_code, reason = "dropping it is its use")]
    lease: Option<CoreLease>,
    /// Gives the resources back when dropped.
    #[expect(dead_code, reason = "dropping it is its use")]
    share: Option<ResourceShare>,
}

/// Linux adds up what each processor has counted only every 32 pages or more, in three counters, so
/// two readings of the same memory may differ by as much on a few processors.
const IMPRECISION: u64 = 2 * 1024 * 1024;

impl Live {
    /// Leaves the process alone, and returns the cores.
    pub(super) fn abandon(self) -> Outcome {
        self.process.abandon();
        self.into_outcome(Usage::default())
    }

    /// Returns the cores.
    pub(super) fn into_outcome(self, usage: Usage) -> Outcome {
        let [stdout, stderr] = self.streams.map(|stream| stream.capture.finish());
        let peak = usage.peak_memory;
        let is_known = peak > self.own_memory.saturating_add(IMPRECISION);
        Outcome {
            cores: self.cpus,
            user: usage.user,
            system: usage.system,
            peak_memory: is_known.then_some(peak),
            stdout,
            stderr,
            ..self.attempt.outcome()
        }
    }
}

impl Local {
    pub(super) fn launch(
        &mut self,
        slot: usize,
        attempt: Attempt,
        lease: Option<CoreLease>,
        share: Option<ResourceShare>,
    ) -> Result<(), StartFailure> {
        let cpus: Vec<u32> = lease.iter().flat_map(|lease| lease.cores().iter()).collect();
        let list = lease.as_ref().map(ToString::to_string).unwrap_or_default();
        let (command, stdin) = self.preparation.command_line(&attempt, slot, list, share.as_ref());
        let prepared = self.launcher.prepare(&command);
        let prepared = prepared.map_err(|problem| StartFailure::other(problem.to_string()))?;
        let stdin = self.preparation.stdin(attempt.number, stdin)?;
        let output = attempt.job.output.as_ref().unwrap_or(&self.config.output);
        let stream = |index| {
            self.stream(output, index).map_err(StartFailure::io("cannot create its output"))
        };
        let ((our_stdout, stdout), (our_stderr, stderr)) = (stream(0)?, stream(1)?);
        let confinement = attempt.job.confinement.as_ref().or(self.config.confinement.as_ref());
        let begun = confinement.map_or(Ok((Confined::default(), Vec::new())), |it| it.begin());
        let (confined, doors) = begun.map_err(StartFailure::io("cannot make its control group"))?;
        let start = LaunchSettings {
            streams: [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()],
            affinity: lease.as_ref().map(|lease| lease.cores().words()),
            nice: Some(self.config.nice),
            open_files: self.config.open_files,
            confinement: confinement.map(|it| it.of_launch(&doors)).unwrap_or_default(),
            is_worker: false,
        };
        let launched = self.launcher.launch(self.guardian.slot(slot), &prepared, &start);
        let process = launched.map_err(|error| {
            let is_sandboxed = start.confinement.sandbox.is_some();
            failure(&error, &attempt.job, &command, is_sandboxed)
        })?;
        drop((stdout, stderr));
        self.generation = self.generation.wrapping_add(1);
        let live = Live {
            attempt,
            process,
            generation: self.generation,
            streams: [our_stdout, our_stderr],
            cpus,
            wants_terminal: false,
            own_memory: self.own_peak.bytes(),
            confined,
            lease,
            share,
        };
        let watched = self.watch(slot, &live);
        self.live[slot] = Some(live);
        if let Err(error) = watched {
            self.end_unwatched(slot);
            return Err(StartFailure::of_io("cannot watch its process", &error));
        }
        self.preparation.feeder.begin();
        Ok(())
    }

    /// Ends a process whose descriptors cannot all be watched.
    fn end_unwatched(&mut self, slot: usize) {
        self.unwatch(slot);
        let live = self.live[slot].take();
        let streams = live.iter().flat_map(|live| &live.streams);
        for pipe in streams.filter_map(|stream| stream.pipe.as_ref()) {
            self.poller.remove(pipe);
        }
        drop(live);
        self.guardian.clear(slot);
    }

    fn watch(&mut self, slot: usize, live: &Live) -> io::Result<()> {
        let pidfd = Token::new(slot, live.generation, PIDFD);
        self.poller.add(live.process.pidfd(), pidfd.0)?;
        for (index, stream) in live.streams.iter().enumerate() {
            if let Some(pipe) = &stream.pipe {
                let token = Token::new(slot, live.generation, index);
                self.poller.add(pipe, token.0)?;
            }
        }
        Ok(())
    }

    /// Stops watching the process on a slot.
    pub(super) fn unwatch(&mut self, slot: usize) {
        if let Some(live) = &self.live[slot] {
            self.poller.remove(live.process.pidfd());
        }
    }

    /// Creates an output stream. Returns our end and the job's end.
    fn stream(&self, output: &Output, index: usize) -> io::Result<(StreamState, OwnedFd)> {
        let capture = match output {
            Output::Tail(limit) => Capture::tail_of(*limit),
            Output::Whole => Capture::whole(tempfile::tempfile),
            Output::Inherit => {
                let own = above_streams([io::stdout().as_fd(), io::stderr().as_fd()][index])?;
                return Ok((StreamState::default(), own));
            }
            Output::Null => return Ok((StreamState::default(), self.preparation.null()?)),
            Output::Files { stdout, stderr } => {
                let path = [stdout, stderr][index];
                let file = File::options()
                    .read(true)
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .open(path)
                    .map_err(|error| {
                        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
                    })?;
                let ours = StreamState::of(Capture::file(file.try_clone()?));
                return Ok((ours, file.into()));
            }
        };
        let (pipe, theirs) = OutputPipe::open()?;
        Ok((StreamState { pipe: Some(pipe), ..StreamState::of(capture) }, theirs))
    }
}

/// Returns the failure of a job whose program was not started.
fn failure(
    error: &LaunchError,
    job: &Job,
    command: &CommandLine,
    is_sandboxed: bool,
) -> StartFailure {
    if let (LaunchStage::Folder, Some(folder)) = (error.stage(), &job.folder) {
        let (folder, cause) = (folder.display(), error.cause());
        return StartFailure::other(format!("cannot enter its directory {folder}: {cause}"));
    }
    StartFailure::of_program(&command.program.to_string_lossy(), is_sandboxed, error)
}
