//! The thread that starts all worker processes, and the attendants that do the handshakes.
//!
//! The spawner lives until every worker has ended, because the kernel sends a worker its
//! parent-death signal when the *thread* that started it exits. Starting is fast, as it does not
//! fork a large parent (see `brigade_sys::launch`); each worker has an attendant thread for its
//! handshake.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::control::ControlSocket;
use brigade_sys::launch::{Confinement, LaunchError, LaunchStage};
use brigade_sys::process::Process;
use brigade_wire::WorkerId;
use brigade_wire::version::{MARKER, PROTOCOL_VERSION};

use crate::command_line::CommandLine;
use crate::error::StartError;
use crate::launcher::{Launcher, Start};
use crate::note;
use crate::workers::handshake;
use crate::workers::output::{HostEnds, WorkerEnds, Writer};
use crate::workers::process_env::limit_threads;
use crate::workers::reserve::require_reserve;
use crate::workers::settings::Settings;
use crate::workers::supervised::Supervised;
use crate::workers::supervisor::Orders;
use crate::workers::worker_process::WorkerProcess;

/// Starts processes until the pool ends, then waits for their attendants.
///
/// If another process is already ordered, it is started before the attendant of the previous one. A
/// new process that starts beside two runnable threads is often queued behind the previous process
/// on the other core for a time slice; that delayed a third of all starts of two workers by a
/// millisecond. The attendant has nothing to do in the meantime, because a process takes longer
/// than that to load its libraries.
pub fn run(owner: &Arc<impl Supervised>, orders: &Orders) {
    let mut attendants: Vec<JoinHandle<()>> = Vec::new();
    while let Ok(process) = orders.recv() {
        let mut unattended = started(&**owner, process);
        while let Some(process) = unattended {
            unattended = orders.try_recv().ok().and_then(|next| started(&**owner, next));
            attendants.retain(|attendant| !attendant.is_finished());
            let worker = process.worker();
            attendants
                .extend(or_refuse(&**owner, worker, || start_attendant(owner, process).map(Some)));
        }
    }
    for attendant in attendants {
        // The panic hook has reported a panic there.
        let _ = attendant.join();
    }
}

/// Starts a process, or reports why that was not possible.
fn started(owner: &impl Supervised, process: Arc<WorkerProcess>) -> Option<Arc<WorkerProcess>> {
    or_refuse(owner, process.worker(), || Ok(launch(owner, &process)?.then_some(process)))
}

/// Returns the result of `start`, or reports that the worker could not be started.
fn or_refuse<T>(
    owner: &impl Supervised,
    worker: WorkerId,
    start: impl FnOnce() -> Result<Option<T>, Refusal>,
) -> Option<T> {
    match catch_panic(start) {
        Ok(Ok(Some(made))) => return Some(made),
        Ok(Ok(None)) => refuse(owner, worker, false, "it is no longer needed"),
        Ok(Err((operation, error))) => {
            // Otherwise the system may have more descriptors or memory in a moment.
            let is_permanent = matches!(error.get_ref(), Some(cause) if cause.is::<Unusable>());
            refuse(owner, worker, is_permanent, &format!("cannot {operation}: {error}"));
        }
        // The panic hook has reported it. The thread has to live on: the kernel would kill all
        // workers with it.
        Err(_) => refuse(owner, worker, false, "the spawner thread panicked"),
    }
    None
}

fn refuse(owner: &impl Supervised, worker: WorkerId, is_permanent: bool, reason: &str) {
    let reason = format!("{worker} cannot be started: {reason}");
    owner.start_failed(worker, StartError { is_permanent, reason });
}

/// A command line that does not start, however often it is tried.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unusable(String);

/// Recognizes errors of a command line that does not start.
fn unless_unusable(line: &CommandLine, error: LaunchError) -> io::Error {
    let (path, setting): (&OsStr, _) = match error.stage() {
        LaunchStage::Program => (&line.program, "worker_command"),
        LaunchStage::Folder => {
            (line.directory.as_ref().map_or(OsStr::new(""), |it| it.as_ref()), "current_dir")
        }
        _ => return error.into_cause(),
    };
    if !error.is_lasting() {
        return error.into_cause();
    }
    let text = format!("{error} {}: {}; correct `{setting}`", path.display(), error.cause());
    io::Error::other(Unusable(text))
}

/// The operation that failed, and its error.
type Refusal = (&'static str, io::Error);

/// Starts the process. Returns `false` if the worker was killed in the meantime.
fn launch(owner: &impl Supervised, process: &WorkerProcess) -> Result<bool, Refusal> {
    if process.is_killed() {
        return Ok(false);
    }
    let supervisor = owner.supervisor();
    let settings = owner.settings();
    require_reserve().map_err(|error| ("start its attendant thread", error))?;
    let (control, worker_end) =
        ControlSocket::pair().map_err(|error| ("make a control socket", error))?;
    let (ends, worker_ends) =
        HostEnds::open(settings.env.stdio).map_err(|error| ("make a pipe", error))?;
    let worker = process.worker();
    let doors = process.make_group(settings).map_err(|error| ("make its control group", error))?;
    let started = owner
        .start(worker, |cores| start(settings, cores, &doors, &worker_end, &worker_ends))
        .map_err(|error| ("start its process", error))?;
    drop((worker_end, worker_ends));
    let pool = settings.pool.as_str().into();
    let attach = |pid| supervisor.output.attach(ends, Writer { pool, worker, pid });
    if !process.set_started(started, control, attach) {
        return Ok(false);
    }
    let pid = process.pid();
    note!(supervisor.output, DEBUG, %worker, pid, "worker spawned");
    Ok(true)
}

fn start(
    settings: &Settings,
    cores: Option<usize>,
    doors: &[File],
    control: &OwnedFd,
    ends: &WorkerEnds,
) -> io::Result<Process> {
    let mut line = settings.command.clone().unwrap_or_else(CommandLine::of_this_program);
    settings.env.apply(&mut line);
    let marker = format!("{PROTOCOL_VERSION}:{}", std::process::id());
    line.set(MARKER.into(), Some(marker.into()));
    if let Some(cores) = cores {
        limit_threads(&mut line, cores);
    }
    let ours = io::stdout();
    let terminal = settings.sandbox.as_ref().and_then(|_| write_only(&ours)).transpose()?;
    let ours = terminal.as_ref().map_or_else(|| ours.as_fd(), AsFd::as_fd);
    let stdout = ends.stdout.as_ref().map_or(ours, AsFd::as_fd);
    let streams = [control.as_fd(), stdout, ends.stderr.as_fd()];
    // A new one for each start, because the host may have changed its environment.
    let is_clear = settings.sandbox.as_ref().is_some_and(|sandbox| sandbox.clears_environment);
    let mut launcher = if is_clear { Launcher::without_environment() } else { Launcher::new(&[]) };
    let prepared =
        launcher.prepare(&line).map_err(|error| io::Error::other(Unusable(error.to_string())))?;
    launcher
        .launch(
            &prepared,
            &Start {
                streams,
                affinity: None,
                nice: None,
                open_files: None,
                // A worker enters its sandbox itself, after its initializer.
                confinement: Confinement { doors, ..Confinement::default() },
                is_worker: true,
            },
        )
        .map_err(|error| unless_unusable(&line, error))
}

/// Opens the terminal of the host again, so that a worker which is not to be trusted cannot read
/// from it. Returns `None` if standard output is no terminal.
fn write_only(stdout: &io::Stdout) -> Option<io::Result<File>> {
    let terminal = format!("/proc/self/fd/{}", stdout.as_raw_fd());
    stdout.is_terminal().then(|| File::options().write(true).open(terminal))
}

fn start_attendant<S: Supervised>(
    owner: &Arc<S>,
    process: Arc<WorkerProcess>,
) -> Result<JoinHandle<()>, Refusal> {
    const OPERATION: &str = "start its attendant thread";
    // The process that was started in the meantime may have taken the space that `launch` saw.
    require_reserve().map_err(|error| (OPERATION, error))?;
    let owner = Arc::clone(owner);
    thread::Builder::new()
        .name(format!("brigade-{}", process.worker().slot))
        .spawn(move || {
            owner.thread_began();
            // Nothing in an attendant is known to panic, but without its attendant a worker's tasks
            // would never get an outcome.
            if catch_panic(|| attend(&*owner, &process)).is_err() {
                owner.thread_panicked(&process);
            }
        })
        .map_err(|error| (OPERATION, error))
}

/// Does the handshake and hands the worker over to the owner.
fn attend(owner: &impl Supervised, process: &Arc<WorkerProcess>) {
    let output = &owner.supervisor().output;
    let (worker, pid) = (process.worker(), process.pid());
    match handshake::run(owner, process) {
        Ok(connected) => {
            note!(output, DEBUG, %worker, pid, "worker ready");
            owner.connected(process, connected);
        }
        Err(failure) => {
            let cause = failure.reason.clone();
            note!(output, WARN, %worker, pid, cause, "worker did not start");
            owner.start_failed(worker, failure);
        }
    }
}
