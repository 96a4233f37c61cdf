//! A running attempt, as the driver holds it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use brigade_cores::CoreLease;
use brigade_sys::clock::now;
use brigade_sys::launch::{Launch, LaunchStage, Leader, Usage};
use rustix::event::epoll;
use rustix::pipe::{PipeFlags, pipe_with};

use super::Drive;
use super::prepare::own_output;
use super::streams::{Streaming, Token};
use crate::machine::Attempt;
use crate::outcome::StartFailure;
use crate::output::{Captured, Output};

/// A running attempt. Dropping it kills its group, reaps it and gives its cores back.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) attempt: Attempt,
    pub(super) leader: Leader,
    pub(super) generation: u32,
    /// Standard output and standard error.
    pub(super) streams: [Streaming; 2],
    pub(super) cpus: Vec<u32>,
    /// Only kept: dropping it gives the cores back.
    #[expect(dead_code, reason = "dropping it is its use")]
    lease: Option<CoreLease>,
}

/// What is left of an attempt.
#[derive(Debug, Default)]
pub(super) struct Remains {
    pub(super) cores: Vec<u32>,
    pub(super) usage: Usage,
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
}

/// How much of its output a failed canary is quoted with.
const LAST_WORDS: usize = 2000;

impl Live {
    /// Leaves it to itself, and gives the cores back.
    pub(super) fn abandon(mut self) -> Remains {
        self.leader.abandon();
        self.into_remains(Usage::default())
    }

    /// Gives the cores back.
    pub(super) fn into_remains(self, usage: Usage) -> Remains {
        let [stdout, stderr] = self.streams.map(|stream| stream.captured);
        Remains { cores: self.cpus, usage, stdout, stderr }
    }
}

impl Remains {
    pub(super) fn last_words(&self) -> String {
        let words = [&self.stdout, &self.stderr].map(|stream| {
            String::from_utf8_lossy(&stream.tail(LAST_WORDS).unwrap_or_default()).into_owned()
        });
        words.concat().trim().to_owned()
    }
}

impl Drive<'_> {
    pub(super) fn launch(
        &mut self,
        slot: usize,
        attempt: Attempt,
        lease: Option<CoreLease>,
    ) -> Result<(), StartFailure> {
        let cpus: Vec<u32> =
            lease.as_ref().map(|lease| lease.cores().iter().collect()).unwrap_or_default();
        let list = lease.as_ref().map(ToString::to_string).unwrap_or_default();
        let prepared = self.preparation.prepare(&attempt, slot, &list)?;
        let output = attempt.job.output.as_ref().unwrap_or(&self.conduct.output);
        let (ours, theirs) = self
            .streams(output)
            .map_err(|error| StartFailure::of_io("cannot make its output", &error))?;
        let [stdout, stderr] = &theirs;
        let environment = prepared.environment(self.preparation.inherited());
        let launched = self.launcher.launch(&Launch {
            program: &prepared.program,
            arguments: &prepared.arguments,
            environment: &environment,
            folder: prepared.folder.as_deref(),
            streams: [prepared.stdin.as_fd(), stdout.as_fd(), stderr.as_fd()],
            affinity: lease.as_ref().map(|lease| lease.cores().words()),
            nice: Some(self.conduct.nice),
            slot: self.guardian.slot(slot),
        });
        let leader = launched.map_err(|error| {
            let program = prepared.program_name();
            match (error.stage(), &attempt.job.folder) {
                (LaunchStage::Folder, Some(folder)) => {
                    let (folder, cause) = (folder.display(), error.cause());
                    StartFailure::other(format!("cannot enter its folder {folder}: {cause}"))
                }
                _ => StartFailure::of_program(&program, &error),
            }
        })?;
        drop(theirs);
        self.generation = self.generation.wrapping_add(1);
        let live =
            Live { attempt, leader, generation: self.generation, streams: ours, cpus, lease };
        if let Err(error) = self.watch(slot, &live) {
            drop(live);
            if let Some(slot) = self.guardian.slot(slot) {
                slot.clear();
            }
            return Err(StartFailure::of_io("cannot watch it", &error));
        }
        self.live[slot] = Some(live);
        Ok(())
    }

    /// What was killed lives on. Its cores come free, as they would never otherwise.
    pub(super) fn abandon(&mut self, slot: usize) {
        let time = now();
        self.drain(slot);
        self.ignore(slot);
        let Some(live) = self.live[slot].take() else { return };
        tracing::warn!(number = live.attempt.number, "a job cannot be killed, and still runs");
        let remains = live.abandon();
        if let Some(verdict) = self.machine.abandoned(slot, time) {
            self.conclude(Some(slot), verdict, time, remains);
        }
    }

    fn watch(&self, slot: usize, live: &Live) -> io::Result<()> {
        let watch = |descriptor: BorrowedFd<'_>, token: Token| {
            let data = epoll::EventData::new_u64(token.into());
            epoll::add(&self.epoll, descriptor, data, epoll::EventFlags::IN)
        };
        watch(live.leader.pidfd(), Token::pidfd(slot, live.generation))?;
        for (index, stream) in live.streams.iter().enumerate() {
            if let Some(pipe) = &stream.pipe {
                watch(pipe.as_fd(), Token::stream(slot, live.generation, index))?;
            }
        }
        Ok(())
    }

    /// What we keep of the streams, and what the job gets.
    fn streams(&self, output: &Output) -> io::Result<([Streaming; 2], [OwnedFd; 2])> {
        let (first, first_theirs) = self.stream(output, 0)?;
        let (second, second_theirs) = self.stream(output, 1)?;
        Ok(([first, second], [first_theirs, second_theirs]))
    }

    fn stream(&self, output: &Output, index: usize) -> io::Result<(Streaming, OwnedFd)> {
        let captured = match output {
            Output::Tail(limit) => Captured::tail_of(*limit),
            Output::Whole => Captured::whole(),
            Output::Inherit => {
                return Ok((Streaming::default(), own_output(index)?));
            }
            Output::Null => return Ok((Streaming::default(), self.preparation.null()?)),
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
                let ours = Streaming::of(Captured::file(file.try_clone()?));
                return Ok((ours, file.into()));
            }
        };
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&read, true)?;
        Ok((Streaming { pipe: Some(read), captured, line: Vec::new() }, write))
    }
}
