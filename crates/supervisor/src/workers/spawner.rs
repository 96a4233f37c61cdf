//! The thread that starts all worker processes, and the attendants that do the handshakes.
//!
//! The spawner lives until every worker has ended, because the kernel sends a worker its
//! parent-death signal when the *thread* that started it exits. Starting is fast, as it does not
//! fork a large parent (see `brigade_sys::launch`). Each worker has an attendant thread for its
//! handshake, unless that waits for nothing.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::clock::now;
use brigade_sys::control::ControlSocket;
use brigade_sys::descriptors::fill_streams;
use brigade_wire::WorkerId;
use brigade_wire::slots::SlotTable;
use crossbeam_channel::RecvTimeoutError;

use crate::error::{StartError, Unusable};
use crate::note;
use crate::workers::handshake;
use crate::workers::output::{HostEnds, Writer};
use crate::workers::starter::Processes;
use crate::workers::supervised::Supervised;
use crate::workers::supervisor::{Orders, require_reserve};
use crate::workers::thread as worker_thread;
use crate::workers::threads::cleaner;
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
    let mut processes = Processes::new(owner.settings());
    loop {
        let limit = give_up_silent(&**owner, &mut processes);
        let process = match orders.recv_timeout(limit.unwrap_or(Duration::MAX)) {
            Ok(process) => process,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        processes.ordered = orders.len();
        let mut unattended = started(&**owner, &mut processes, process);
        while let Some(process) = unattended {
            processes.ordered = orders.len();
            // The attendant does not wait for a server.
            let next = !processes.may_wait(owner.settings());
            let next = next.then(|| orders.try_recv().ok()).flatten();
            unattended = next.and_then(|next| started(&**owner, &mut processes, next));
            attendants.retain(|attendant| !attendant.is_finished());
            let worker = process.worker();
            attendants
                .extend(or_refuse(&**owner, worker, || start_attendant(owner, process).map(Some)));
        }
    }
    processes.end(owner.supervisor());
    for attendant in attendants {
        // The panic hook has reported a panic there.
        let _ = attendant.join();
    }
}

/// Starts a process, or reports why that was not possible. Returns the process if it needs an
/// attendant.
fn started(
    owner: &impl Supervised,
    processes: &mut Processes,
    process: Arc<WorkerProcess>,
) -> Option<Arc<WorkerProcess>> {
    if or_refuse(owner, process.worker(), || launch(owner, processes, &process))? {
        return Some(process);
    }
    let until = now().saturating_add(owner.settings().start_timeout);
    let table = attend_or_kill(owner, &process, false)?;
    processes.silent.push((process, table, until));
    None
}

/// Gives up workers that take tasks and have not run in time. Returns the time that the next one
/// has left.
fn give_up_silent(owner: &impl Supervised, processes: &mut Processes) -> Option<Duration> {
    let (now, limit) = (now(), owner.settings().start_timeout);
    processes.silent.retain(|(process, table, until)| {
        if *until <= now && table.give_up() {
            owner.supervisor().is_server_suspect.store(true, Ordering::Release);
            let cause = format!("it has not run within {limit:?} (start_timeout)");
            refuse(owner, process.worker(), true, &cause);
            cleaner::kill(owner, process, false);
        }
        table.is_silent()
    });
    // The first is the oldest.
    processes.silent.first().map(|(.., until)| until.saturating_since(now))
}

/// Returns the result of `start`, or reports that the worker could not be started.
fn or_refuse<T>(
    owner: &impl Supervised,
    worker: WorkerId,
    start: impl FnOnce() -> Result<Option<T>, FailedOperation>,
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
    owner.start_failed(worker, StartError::new(worker, is_permanent, reason));
}

/// The operation that failed, and its error.
type FailedOperation = (&'static str, io::Error);

/// Starts the process. Returns `None` if the worker was killed in the meantime, and otherwise
/// whether its handshake asks for something.
fn launch(
    owner: &impl Supervised,
    processes: &mut Processes,
    process: &WorkerProcess,
) -> Result<Option<bool>, FailedOperation> {
    if process.is_killed() {
        return Ok(None);
    }
    let supervisor = owner.supervisor();
    let settings = owner.settings();
    if settings.thread.is_some() {
        // The attendant starts it.
        return Ok(Some(true));
    }
    require_reserve().map_err(|error| ("start its attendant thread", error))?;
    fill_streams();
    let (control, worker_end) =
        ControlSocket::pair().map_err(|error| ("make a control socket", error))?;
    let (ends, worker_ends) = HostEnds::open(settings.env.stdio, settings.sandbox.is_some())
        .map_err(|error| ("make a pipe", error))?;
    let worker = process.worker();
    let doors = process.make_group(settings).map_err(|error| ("make its control group", error))?;
    let ours = io::stdout();
    let stdout = worker_ends.stdout.as_ref().map_or(ours.as_fd(), AsFd::as_fd);
    let streams = [worker_end.as_fd(), stdout, worker_ends.stderr.as_fd()];
    let started =
        owner.start(worker, |cores| processes.start(owner, process, cores, streams, &doors));
    let (started, program) = started.map_err(|error| ("start its process", error))?;
    drop((worker_end, worker_ends));
    let pool = settings.pool.as_str().into();
    let attach = |pid| supervisor.output.attach(ends, Writer { pool, worker, pid });
    if !process.set_started(started, program, control, attach) {
        return Ok(None);
    }
    let (pid, is_forked) = (process.pid(), process.is_forked());
    note!(supervisor.output, DEBUG, %worker, pid, is_forked, "worker spawned");
    Ok(Some(handshake::asks(settings, process)))
}

fn start_attendant<S: Supervised>(
    owner: &Arc<S>,
    process: Arc<WorkerProcess>,
) -> Result<JoinHandle<()>, FailedOperation> {
    const OPERATION: &str = "start its attendant thread";
    // The process that was started in the meantime may have taken the space that `launch` saw.
    require_reserve().map_err(|error| (OPERATION, error))?;
    let owner = Arc::clone(owner);
    thread::Builder::new()
        .name(format!("brigade-{}", process.worker().slot))
        .spawn(move || {
            owner.thread_began();
            attend_or_kill(&*owner, &process, true);
        })
        .map_err(|error| (OPERATION, error))
}

/// Attends a worker. Nothing in that is known to panic, but then the worker's tasks would never get
/// an outcome.
fn attend_or_kill(
    owner: &impl Supervised,
    process: &Arc<WorkerProcess>,
    asks: bool,
) -> Option<Arc<SlotTable>> {
    let attended = catch_panic(|| attend(owner, process, asks));
    attended.unwrap_or_else(|_| {
        owner.thread_panicked(process);
        None
    })
}

/// Does the handshake, and hands the worker over to the owner. Returns its table of task states.
fn attend(
    owner: &impl Supervised,
    process: &Arc<WorkerProcess>,
    asks: bool,
) -> Option<Arc<SlotTable>> {
    let output = &owner.supervisor().output;
    let (worker, pid) = (process.worker(), process.pid());
    let connected = match owner.settings().thread {
        Some(run) => worker_thread::start(owner.settings(), process, run)
            .map_err(|reason| StartError::new(worker, false, &reason)),
        None => handshake::run(owner, process, asks),
    };
    match connected {
        Ok(connected) => {
            note!(output, DEBUG, %worker, pid, "worker ready");
            let table = Arc::clone(&connected.connection.table);
            owner.connected(process, connected);
            Some(table)
        }
        Err(failure) => {
            let cause = failure.reason.clone();
            note!(output, WARN, %worker, pid, cause, "worker did not start");
            owner.start_failed(worker, failure);
            None
        }
    }
}
