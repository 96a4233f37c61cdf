//! The thread that starts all worker processes.
//!
//! It lives until every worker has ended, because the kernel sends a worker its parent-death signal
//! when the *thread* that started it exits. Starting is fast, as it does not fork a large parent
//! (see `brigade_sys::process`); the handshake takes place in the worker's attendant.

use std::os::fd::OwnedFd;
use std::process::{Command, Stdio as Stream};
use std::sync::Arc;
use std::thread::JoinHandle;

use brigade_scheduler::{Event, StartFailure};
use brigade_sys::catch_panic::catch_panic;
use brigade_sys::control::ControlSocket;
use brigade_sys::memory::require_address_space;
use brigade_sys::process::{self, Process};
use brigade_wire::WorkerId;
use brigade_wire::version::{MARKER, PROTOCOL_VERSION};
use crossbeam_channel::Receiver;
use tracing::{Level, debug, warn};

use super::RESERVED_SPACE;
use super::attendant::{self, StartedWorker};
use super::death;
use super::outcome::EventData;
use super::output::{HostEnds, Writer};
use super::owner::{self, Role};
use super::shared::Shared;
use super::worker_slot::ProcessState;
use crate::config::Config;
use crate::cores;

/// An order to start the process of a worker.
pub(crate) struct SpawnOrder {
    pub(super) worker: WorkerId,
    pub(super) state: Arc<ProcessState>,
}

/// Starts processes until the pool ends, then waits for their attendants.
///
/// If another process is already ordered, it is started before the attendant of the previous one. A
/// new process that starts beside two runnable threads is often queued behind the previous process
/// on the other core for a time slice; that delayed a third of all starts of two workers by a
/// millisecond. The attendant has nothing to do in the meantime, because a process takes longer
/// than that to load its libraries.
pub(super) fn run(shared: &Arc<Shared>, orders: &Receiver<SpawnOrder>) {
    let mut attendants: Vec<JoinHandle<()>> = Vec::new();
    while let Ok(order) = orders.recv() {
        let mut unattended = or_refuse(shared, order.worker, || launch(shared, &order));
        while let Some(started) = unattended {
            unattended = orders
                .try_recv()
                .ok()
                .and_then(|next| or_refuse(shared, next.worker, || launch(shared, &next)));
            let worker = started.worker;
            attendants.retain(|attendant| !attendant.is_finished());
            attendants.extend(or_refuse(shared, worker, || start_attendant(shared, started)));
        }
    }
    for attendant in attendants {
        // The panic hook has reported a panic there.
        let _ = attendant.join();
    }
}

/// Returns the result of `start`, or reports that the worker could not be started.
fn or_refuse<T>(
    shared: &Shared,
    worker: WorkerId,
    start: impl FnOnce() -> Result<Option<T>, SpawnError>,
) -> Option<T> {
    match catch_panic(start) {
        Ok(Ok(Some(made))) => return Some(made),
        Ok(Ok(None)) => refuse(shared, worker, "it is no longer needed"),
        Ok(Err((operation, error))) => {
            refuse(shared, worker, &format!("failed to {operation}: {error}"));
        }
        // The panic hook has reported it. The thread has to live on: the kernel would kill all
        // workers with it.
        Err(_) => refuse(shared, worker, "the spawner thread panicked"),
    }
    None
}

fn refuse(shared: &Shared, worker: WorkerId, reason: &str) {
    // The failure is not permanent: the system may have more descriptors or memory in a moment.
    let failure = StartFailure {
        permanent: false,
        reason: format!("{worker} could not be started: {reason}").into(),
    };
    shared.remove_dead(worker, Event::StartFailed { worker, failure }, EventData::Nothing);
}

type SpawnError = (&'static str, std::io::Error);

/// Starts the process. Returns `None` if the worker was killed in the meantime.
fn launch(shared: &Shared, order: &SpawnOrder) -> Result<Option<StartedWorker>, SpawnError> {
    if order.state.was_killed_before_start() {
        return Ok(None);
    }
    require_address_space(RESERVED_SPACE).map_err(|error| ("start its attendant thread", error))?;
    let (control, worker_end) =
        ControlSocket::pair().map_err(|error| ("make a control socket", error))?;
    let (ends, worker_ends) =
        HostEnds::open(shared.config.process_env.stdio).map_err(|error| ("make a pipe", error))?;
    let mut command = command(&shared.config, worker_end);
    worker_ends.apply(&mut command);
    let lease = shared.config.cores.as_ref().and_then(|cores| cores.of(order.worker.slot));
    let process = match &lease {
        None => Process::spawn(&mut command),
        Some(lease) => cores::spawn_pinned(lease, &mut command, |requested, effective| {
            let worker = order.worker;
            shared.output.note(Level::WARN, move |pool| {
                warn!(pool, %worker, %requested, %effective, "worker may run only on some of its cores");
            });
        }),
    };
    let process = process.map_err(|error| ("start its process", error))?;
    // The command holds the host's copies of the worker's ends.
    drop(command);
    let process = Arc::new(process);
    if !order.state.set_started(&process) {
        // Dropping the process kills and reaps it.
        return Ok(None);
    }
    let (worker, pid) = (order.worker, process.pid());
    shared.output.note(Level::DEBUG, move |pool| debug!(pool, %worker, pid, "worker spawned"));
    let writer = Writer {
        pool: shared.config.name.as_str().into(),
        worker: order.worker,
        pid: process.pid(),
    };
    let streams = shared.output.attach(ends, writer);
    Ok(Some(StartedWorker { worker, process, state: Arc::clone(&order.state), control, streams }))
}

fn start_attendant(
    shared: &Arc<Shared>,
    started: StartedWorker,
) -> Result<Option<JoinHandle<()>>, SpawnError> {
    const OPERATION: &str = "start its attendant thread";
    // The process that was started in the meantime may have taken the space that `launch` saw.
    require_address_space(RESERVED_SPACE).map_err(|error| (OPERATION, error))?;
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name(format!("brigade-{}", started.worker.slot))
        .spawn(move || {
            shared.own_this_thread();
            owner::take_role(Role::Driver);
            let worker = started.worker;
            // Nothing in an attendant is known to panic, but without its attendant a worker's tasks
            // would never get an outcome.
            let attended = catch_panic(|| attendant::run(&shared, started));
            if attended.is_err() {
                death::kill_orphaned(&shared, worker);
            }
        })
        .map(Some)
        .map_err(|error| (OPERATION, error))
}

fn command(config: &Config, control: OwnedFd) -> Command {
    let mut command = match &config.worker_command {
        None => process::self_command(),
        Some(line) => {
            let mut command = process::command(&line.program);
            command.args(&line.arguments);
            for (key, value) in &line.environment {
                match value {
                    Some(value) => command.env(key, value),
                    None => command.env_remove(key),
                };
            }
            if let Some(directory) = &line.directory {
                command.current_dir(directory);
            }
            command
        }
    };
    config.process_env.apply(&mut command);
    command
        .env(MARKER, format!("{PROTOCOL_VERSION}:{}", std::process::id()))
        .stdin(Stream::from(control));
    command
}
