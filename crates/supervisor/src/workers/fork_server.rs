//! The host's end of a fork server.
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
use brigade_sys::executable::{BuildIdentity, build_identity};
use brigade_sys::inherited::{Fixed, Inherited};
use brigade_sys::launch::FileId;
use brigade_sys::process::{Exit, Process, Signal, last_line};
use brigade_sys::sealed::SealedBytes;
use brigade_sys::sibling::Born;
use brigade_sys::wait::wait_readable;
use brigade_wire::fork::{ForkRequest, FromForkServer, Serve};
use brigade_wire::handshake::{FromWorkerControl, ToWorkerControl};
use brigade_wire::version::PROTOCOL_VERSION;

use crate::command_line::CommandLine;
use crate::launcher::of_worker;
use crate::note;
use crate::workers::death::Death;
use crate::workers::greeting::Greeting;
use crate::workers::output::{HostEnds, WorkerStreams, Writer};
use crate::workers::settings::Settings;
use crate::workers::starter::{execute, inherits_environment};
use crate::workers::supervisor::Supervisor;
use crate::workers::unusable::unless_unusable;
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
    program: Option<FileId>,
    /// It runs the same build as this program, so the host knows what its workers would answer to a
    /// greeting.
    pub(crate) is_same_build: bool,
    /// The time by which it has to serve, until it does.
    pub(crate) serves_by: Option<Monotonic>,
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
    pub(crate) program: Option<FileId>,
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
        let process = execute(settings, around.line, &start)?;
        drop((there, server_ends));
        let (pool, pid) = (settings.pool.as_str().into(), process.pid());
        let writer = Writer { pool, worker: worker.worker(), pid };
        let streams = supervisor.output.attach(ends, writer);
        let process = Arc::new(process);
        supervisor.reaper.watch_server(Arc::clone(&process));
        let preload = settings.setup.preload.as_ref();
        let serve = ToWorkerControl::Serve(Serve {
            version: PROTOCOL_VERSION,
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
            environment: around.line.whole_environment(inherits_environment(settings)),
            fixed: around.inherited.1.clone(),
            program: around.program,
            is_same_build: false,
            serves_by: Some(clock::now().saturating_add(settings.start_timeout)),
            is_preloading: false,
        })
    }

    /// Returns the reason why its copies would not be like new processes of the host any more.
    pub(crate) fn outdated(&self, around: &Surroundings<'_>) -> Option<&'static str> {
        if self.fixed != around.inherited.1 {
            Some("the host has another user, root, control group or sandbox by now")
        } else if self.program != around.program {
            Some("its program was replaced")
        } else {
            None
        }
    }

    /// Returns `true` if it is another program, which may not know what a fork server is.
    pub(crate) fn is_foreign_and_new(&self, settings: &Settings) -> bool {
        settings.command.is_some() && settings.setup.preload.is_none() && self.serves_by.is_some()
    }

    /// Waits until it serves, or only looks if it does.
    pub(crate) fn wait_until_serving(
        &mut self,
        around: &Surroundings<'_>,
        waits: bool,
    ) -> Result<(), ForkError> {
        let Surroundings { supervisor, settings, .. } = *around;
        let Some(serves_by) = self.serves_by else { return Ok(()) };
        let now = clock::now();
        let until = if waits { serves_by } else { now };
        let received = self.receive(around, until, Duration::ZERO);
        let (answer, _) = received.map_err(|failure| match failure {
            Failure::Unneeded => ForkError::Refused(io::Error::other("it is no longer needed")),
            Failure::TimedOut if !waits && now < serves_by => ForkError::NotYet,
            Failure::TimedOut if self.is_preloading => {
                let limit = settings.setup.timeout;
                let text =
                    format!("`preload` did not return within {limit:?} (initializer_timeout)");
                ForkError::Broken(text)
            }
            Failure::TimedOut => ForkError::Broken(format!(
                "it did not answer within {:?} (start_timeout); is brigade::init() the first line \
                 of its main?",
                settings.start_timeout
            )),
            Failure::Gone => ForkError::Gone,
            Failure::Other(reason) => ForkError::Broken(reason),
        })?;
        match answer {
            FromForkServer::Preloading => {
                self.is_preloading = true;
                self.serves_by = Some(clock::now().saturating_add(settings.setup.timeout));
                self.wait_until_serving(around, waits)
            }
            FromForkServer::Serving { identity, small_pages } => {
                self.serves_by = None;
                self.is_same_build = BuildIdentity::from_bytes(identity) == build_identity();
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
                Ok(())
            }
            FromForkServer::Unsuitable { reason, threads } => {
                Err(ForkError::Unsuitable { reason, threads })
            }
            FromForkServer::PreloadFailed { reason } => Err(ForkError::Broken(reason)),
            other => Err(ForkError::Broken(format!("it sent {other:?}"))),
        }
    }

    /// Forks a worker, and greets it.
    pub(crate) fn fork(
        &self,
        around: &Surroundings<'_>,
        greeting: Option<&Greeting<'_>>,
    ) -> Result<Process, ForkError> {
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
            hello: greeting.map(|greeting| Box::new(greeting.hello.clone())),
        };
        let packet = ToWorkerControl::Fork(request).encode();
        let packet = packet.map_err(|error| refused(io::Error::other(error)))?;
        let mut descriptors = around.streams.to_vec();
        descriptors.push(folder.as_fd());
        descriptors.extend(environment.as_ref().map(AsFd::as_fd));
        descriptors.extend(around.doors.iter().map(AsFd::as_fd));
        descriptors.extend(greeting.iter().flat_map(|greeting| greeting.descriptors()));
        self.born.clear();
        let limit = around.settings.start_timeout;
        let deadline = clock::now().saturating_add(limit);
        let sent = self.control.send(&packet, &descriptors);
        let received = match sent {
            Ok(()) => self.receive(around, deadline, PATIENCE),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::Gone),
            Err(error) => Err(Failure::Other(format!("it takes no request: {error}"))),
        };
        match received {
            Ok((FromForkServer::Forked, Some(pidfd))) => {
                let taken = self.born.take(pidfd);
                taken.map_err(|error| ForkError::Broken(format!("it has forked nothing: {error}")))
            }
            Ok((FromForkServer::NotForked { reason }, _)) => Err(refused(io::Error::other(reason))),
            Ok((other, _)) => Err(ForkError::Broken(format!("it sent {other:?}"))),
            // Its answer would be taken for that to the next request.
            Err(Failure::Unneeded) => Err(ForkError::Broken("it is no longer needed".into())),
            Err(Failure::TimedOut) => Err(ForkError::Broken(format!(
                "it did not answer within {limit:?} (start_timeout)"
            ))),
            Err(Failure::Gone) => Err(ForkError::Gone),
            Err(Failure::Other(reason)) => Err(ForkError::Broken(reason)),
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

    /// Waits for an answer. A worker that is killed meanwhile wakes the thread, which waits for
    /// `patience` then.
    fn receive(
        &self,
        around: &Surroundings<'_>,
        mut deadline: Monotonic,
        patience: Duration,
    ) -> Result<(FromForkServer, Option<OwnedFd>), Failure> {
        let waker = &around.supervisor.unneeded;
        let waited_for = [self.control.as_fd(), self.process.pidfd(), waker.as_fd()];
        let (mut is_dead, mut is_unneeded) = (false, false);
        loop {
            waker.drain();
            let received = self.control.try_receive();
            let received = received.map_err(|error| Failure::Other(error.to_string()))?;
            match received {
                Some(Received::Packet { bytes, descriptors }) => {
                    let message = FromWorkerControl::decode(&bytes);
                    return match message {
                        Ok(FromWorkerControl::ForkServer(answer)) => {
                            Ok((answer, descriptors.into_iter().next()))
                        }
                        Ok(FromWorkerControl::Refused { reason }) => {
                            Err(Failure::Other(format!("it refused: {reason}")))
                        }
                        _ => Err(Failure::Other("it sent a malformed answer".into())),
                    };
                }
                Some(_) => return Err(Failure::Gone),
                None if is_dead => return Err(Failure::Gone),
                None => {}
            }
            if !is_unneeded && around.worker.is_killed() {
                is_unneeded = true;
                deadline = deadline.min(clock::now().saturating_add(patience));
            }
            let ready = wait_readable(&waited_for, Some(deadline));
            let ready = ready.map_err(|error| Failure::Other(error.to_string()))?;
            if !ready.contains(&true) {
                return Err(if is_unneeded { Failure::Unneeded } else { Failure::TimedOut });
            }
            // Everything that it sent before its death has arrived by now.
            is_dead = ready[1];
        }
    }
}

/// The reason why an answer did not come.
enum Failure {
    /// The worker is no longer needed.
    Unneeded,
    TimedOut,
    /// The server has closed its end, or has ended.
    Gone,
    Other(String),
}

/// A copy of this much memory in pages of 4 KiB takes 1.4 ms, as long as executing a program.
const MANY_SMALL_PAGES: u64 = 64 << 20;

/// A server answers within a millisecond. One that has not after this time, when nobody needs its
/// answer any more, is not waited for.
const PATIENCE: Duration = Duration::from_millis(100);
