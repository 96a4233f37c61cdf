//! The host's end of a fork server (zygote).
//!
//! ```text
//! launched -> serving -> gone
//! ```
//! Only the spawner's thread uses it. All its waits end at a deadline, with the server's death, or
//! when the worker that it starts is no longer needed. A server that answers late, wrongly or not
//! at all is killed; if it had made a copy that nobody knows, that is found in shared memory and
//! killed, too. The next start launches another server.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use brigade_sys::clock::{self, Monotonic};
use brigade_sys::control::{ControlSocket, Received};
use brigade_sys::executable::build_identity;
use brigade_sys::inherited::{Fixed, Inherited};
use brigade_sys::launch::FileId;
use brigade_sys::process::{Exit, Process, Signal, last_line};
use brigade_sys::sealed::SealedBytes;
use brigade_sys::sibling::Born;
use brigade_sys::wait::wait_readable;
use brigade_wire::fork::{ForkRequest, FromForkServer, Serve};
use brigade_wire::handshake::{FromWorkerControl, ToWorkerControl, WorkerProgram};

use crate::command_line::CommandLine;
use crate::error::unless_unusable;
use crate::launcher::of_worker;
use crate::note;
use crate::workers::death::Death;
use crate::workers::output::{HostEnds, WorkerStreams, Writer};
use crate::workers::settings::Settings;
use crate::workers::starter::execute;
use crate::workers::supervisor::Supervisor;
use crate::workers::worker_process::WorkerProcess;

/// A process that forks workers.
pub(crate) struct ForkServer {
    pub(crate) process: Arc<Process>,
    control: ControlSocket,
    streams: WorkerStreams,
    born: Born,
    /// The environment that it was started with.
    environment: Vec<u8>,
    fixed: Fixed,
    file: Option<FileId>,
    /// Its program, once it serves.
    pub(crate) program: Option<WorkerProgram>,
    /// The time by which it has to serve.
    serves_by: Monotonic,
    is_preloading: bool,
}

/// A new worker, with its descriptors and surroundings.
pub(crate) struct Surroundings<'a> {
    pub(crate) supervisor: &'a Supervisor,
    pub(crate) settings: &'a Settings,
    pub(crate) worker: &'a WorkerProcess,
    pub(crate) streams: [BorrowedFd<'a>; 3],
    pub(crate) doors: &'a [File],
    pub(crate) environment: Vec<u8>,
    /// The program of the server, without the variables of the worker's slot.
    pub(crate) line: &'a CommandLine,
    pub(crate) inherited: (Inherited, Fixed),
    pub(crate) file: Option<FileId>,
}

/// The reason why no worker was forked.
pub(crate) enum ForkError {
    /// The server is not serving yet.
    NotYet,
    /// The program cannot be forked; it has to be executed.
    Unsuitable { reason: String, threads: u64 },
    /// The server has ended, and another one may not.
    Gone,
    /// The server is of no use any more, and another one may be.
    Broken(String),
    /// The system refused something, which it may grant later if the error does not say otherwise.
    Refused(io::Error),
}

impl ForkServer {
    /// Starts a server, which is not serving yet.
    pub(crate) fn launch(around: &Surroundings<'_>) -> io::Result<Self> {
        let Surroundings { supervisor, settings, worker, .. } = *around;
        let (control, there) = ControlSocket::pair()?;
        let (ends, server_ends) = HostEnds::open(settings.env.stdio, settings.sandbox.is_some())?;
        let born = Born::new()?;
        let stdout = server_ends.stdout.as_ref().map_or(around.streams[1], AsFd::as_fd);
        let start = of_worker([there.as_fd(), stdout, server_ends.stderr.as_fd()], &[]);
        let (process, environment) = execute(settings, around.line, &start)?;
        drop((there, server_ends));
        let (pool, pid) = (settings.pool.as_str().into(), process.pid());
        let writer = Writer { pool, worker: worker.worker(), pid };
        let streams = supervisor.output.attach(ends, writer);
        let process = Arc::new(process);
        supervisor.reaper.watch_server(Arc::clone(&process));
        let preload = settings.setup.preload.as_ref();
        let serve = ToWorkerControl::Serve(Serve {
            identity: *build_identity().as_bytes(),
            preload: preload.map(|it| it.function.raw()),
        });
        let argument = preload.map(|it| it.argument.as_fd());
        let descriptors: Vec<_> = [born.descriptor()].into_iter().chain(argument).collect();
        let sent = serve.encode().map_err(io::Error::other);
        // A server that has ended already is found when its answer is awaited.
        let _ = sent.and_then(|packet| control.send(&packet, &descriptors));
        supervisor.fork_server.store(pid, Ordering::Relaxed);
        note!(supervisor.output, DEBUG, pid, "fork server started");
        Ok(Self {
            process,
            control,
            streams,
            born,
            environment,
            fixed: around.inherited.1.clone(),
            file: around.file,
            program: None,
            serves_by: clock::now().saturating_add(settings.start_timeout),
            is_preloading: false,
        })
    }

    /// Returns the reason why its copies would not be like new processes of the host any more.
    pub(crate) fn outdated(&self, around: &Surroundings<'_>) -> Option<&'static str> {
        if self.fixed != around.inherited.1 {
            Some("the host has another user, root, control group or sandbox by now")
        } else if self.file != around.file {
            Some("its program was replaced")
        } else {
            None
        }
    }

    /// Returns `true` if it is another program, which may not know what a fork server is.
    pub(crate) fn is_foreign_and_new(&self, settings: &Settings) -> bool {
        settings.command.is_some() && settings.setup.preload.is_none() && self.program.is_none()
    }

    /// Waits until it serves, or only looks if it does. Returns its program.
    pub(crate) fn wait_until_serving(
        &mut self,
        around: &Surroundings<'_>,
        waits: bool,
    ) -> Result<WorkerProgram, ForkError> {
        let Surroundings { supervisor, settings, .. } = *around;
        if let Some(program) = &self.program {
            return Ok(program.clone());
        }
        let (now, serves_by) = (clock::now(), self.serves_by);
        let until = if waits { serves_by } else { now };
        let Some((answer, _)) = self.receive(around, until, Duration::ZERO)? else {
            return Err(if around.worker.is_killed() {
                ForkError::Refused(io::Error::other(UNNEEDED))
            } else if !waits && now < serves_by {
                ForkError::NotYet
            } else if self.is_preloading {
                let limit = settings.setup.timeout;
                ForkError::Broken(format!(
                    "`preload` did not return within {limit:?} (initializer_timeout)"
                ))
            } else {
                ForkError::Broken(format!(
                    "it did not answer within {:?} (start_timeout); is brigade::init() the first \
                     line of its main?",
                    settings.start_timeout
                ))
            });
        };
        match answer {
            FromForkServer::Preloading => {
                self.is_preloading = true;
                self.serves_by = clock::now().saturating_add(settings.setup.timeout);
                self.wait_until_serving(around, waits)
            }
            FromForkServer::Serving { program, small_pages } => {
                self.program = Some(program.clone());
                let pid = self.process.pid();
                note!(supervisor.output, DEBUG, pid, "fork server ready");
                if small_pages > MANY_SMALL_PAGES {
                    let mebibytes = small_pages >> 20;
                    note!(
                        supervisor.output,
                        WARN,
                        pid,
                        mebibytes,
                        "`preload` has left memory in small pages, so forking a worker takes longer than executing it; put it into few large blocks, and allow transparent huge pages"
                    );
                }
                Ok(program)
            }
            FromForkServer::Unsuitable { reason, threads } => {
                Err(ForkError::Unsuitable { reason, threads })
            }
            FromForkServer::PreloadFailed { reason } => Err(ForkError::Broken(reason)),
            other => Err(ForkError::Broken(format!("it sent {other:?}"))),
        }
    }

    /// Forks a worker.
    pub(crate) fn fork(&self, around: &Surroundings<'_>) -> Result<Process, ForkError> {
        let refused = ForkError::Refused;
        let environment = (self.environment != around.environment).then_some(&around.environment);
        let environment = environment
            .map(|entries| SealedBytes::create("brigade-environment", &[entries.as_slice()]));
        let environment = environment.transpose().map_err(refused)?;
        let folder = around.line.directory.as_ref();
        let folder = folder.map_or(Path::new("."), |it| Path::new(it));
        let folder = brigade_sys::sibling::open_folder(folder)
            .map_err(|error| refused(unless_unusable(around.line, error)))?;
        let request = ForkRequest {
            environment: environment.is_some(),
            doors: u8::try_from(around.doors.len()).unwrap_or(u8::MAX),
            inherited: around.inherited.0.clone(),
        };
        let packet = ToWorkerControl::Fork(request).encode();
        let packet = packet.map_err(|error| refused(io::Error::other(error)))?;
        let mut descriptors = around.streams.to_vec();
        descriptors.push(folder.as_fd());
        descriptors.extend(environment.as_ref().map(AsFd::as_fd));
        descriptors.extend(around.doors.iter().map(AsFd::as_fd));
        self.born.clear();
        let limit = around.settings.start_timeout;
        let deadline = clock::now().saturating_add(limit);
        match self.control.send(&packet, &descriptors) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(ForkError::Gone),
            Err(error) => return Err(ForkError::Broken(format!("it takes no request: {error}"))),
        }
        match self.receive(around, deadline, PATIENCE)? {
            Some((FromForkServer::Forked, Some(pidfd))) => {
                let taken = self.born.take(pidfd);
                taken.map_err(|error| ForkError::Broken(format!("it has forked nothing: {error}")))
            }
            Some((FromForkServer::NotForked { reason }, _)) => {
                Err(refused(io::Error::other(reason)))
            }
            Some((other, _)) => Err(ForkError::Broken(format!("it sent {other:?}"))),
            // Its answer would be taken for that to the next request.
            None if around.worker.is_killed() => Err(ForkError::Broken(UNNEEDED.into())),
            None => Err(ForkError::Broken(format!(
                "it did not answer within {limit:?} (start_timeout)"
            ))),
        }
    }

    /// Ends a server that nobody waits for.
    pub(crate) fn retire(self, supervisor: &Supervisor) {
        // The last copy is a worker that somebody has.
        self.born.clear();
        self.end(supervisor, None);
    }

    /// Ends the server, and a copy of it that nobody knows. Returns the reason, and what is known
    /// about its end; without a reason, it has ended by itself.
    pub(crate) fn end(self, supervisor: &Supervisor, reason: Option<String>) -> String {
        supervisor.forget_fork_server(self.process.pid());
        // A process that may not be killed is left alone.
        let exit = self.process.signal_group(Signal::Kill);
        let exit = exit.and_then(|()| self.process.reap());
        self.born.end_unnamed();
        let (tail, _) = supervisor.output.finish_streams(&self.streams);
        let exit = exit.unwrap_or(Exit::Unknown);
        let mut text =
            reason.unwrap_or_else(|| format!("it ended: {}", Death::new(exit, tail.clone()).end()));
        if let Some(line) = last_line(&tail) {
            text.push_str("; its last line on stderr: ");
            text.push_str(line);
        }
        text
    }

    /// Waits for an answer. Returns `None` if there is none by the deadline, or `patience` after
    /// the worker was killed, which wakes the thread.
    fn receive(
        &self,
        around: &Surroundings<'_>,
        mut deadline: Monotonic,
        patience: Duration,
    ) -> Result<Option<(FromForkServer, Option<OwnedFd>)>, ForkError> {
        let broken = |error: io::Error| ForkError::Broken(error.to_string());
        let waker = &around.supervisor.unneeded;
        let waited_for = [self.control.as_fd(), self.process.pidfd(), waker.as_fd()];
        let (mut is_dead, mut is_unneeded) = (false, false);
        loop {
            waker.drain();
            match self.control.try_receive().map_err(broken)? {
                Some(Received::Packet { bytes, descriptors }) => {
                    return match FromWorkerControl::decode(&bytes) {
                        Ok(FromWorkerControl::ForkServer(answer)) => {
                            Ok(Some((answer, descriptors.into_iter().next())))
                        }
                        Ok(FromWorkerControl::Refused { reason }) => {
                            Err(ForkError::Broken(format!("it refused: {reason}")))
                        }
                        _ => Err(ForkError::Broken("it sent a malformed answer".into())),
                    };
                }
                None if !is_dead => {}
                _ => return Err(ForkError::Gone),
            }
            if !is_unneeded && around.worker.is_killed() {
                is_unneeded = true;
                deadline = deadline.min(clock::now().saturating_add(patience));
            }
            let ready = wait_readable(&waited_for, Some(deadline)).map_err(broken)?;
            if !ready.contains(&true) {
                return Ok(None);
            }
            // Everything that it sent before its death has arrived by now.
            is_dead = ready[1];
        }
    }
}

const UNNEEDED: &str = "it is no longer needed";

/// A copy of this much memory in pages of 4 KiB takes 1.4 ms, as long as executing a program.
const MANY_SMALL_PAGES: u64 = 64 << 20;

/// A server answers within a millisecond. One that has not after this time, when nobody needs its
/// answer any more, is not waited for.
const PATIENCE: Duration = Duration::from_millis(100);
