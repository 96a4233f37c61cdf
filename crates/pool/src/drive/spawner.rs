//! The one thread that starts processes.
//!
//! It lives until every worker is gone, because the kernel sends a worker its parent-death signal when
//! the *thread* that started it exits. Starting is quick (no fork of a large parent: see
//! `brigade_sys::process`); the handshake goes on in the worker's attendant.

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio as Stream};
use std::sync::Arc;
use std::thread::JoinHandle;

use brigade_cores::CoreLease;
use brigade_sys::control::ControlSocket;
use brigade_sys::memory::require_address_space;
use brigade_sys::process::{self, Process};
use brigade_wire::WorkerId;
use brigade_wire::version::{MARKER, PROTOCOL_VERSION};
use crossbeam_channel::Receiver;
use tracing::{Level, debug, warn};

use super::SPACE_LEFT;
use super::attendant::{self, Newborn};
use super::console::{Ends, Writer};
use super::death;
use super::outcome::Facts;
use super::owner::{self, Role};
use super::post::Life;
use super::shared::Shared;
use crate::config::Config;
use crate::cores::THREAD_VARIABLES;
use crate::machine::{Event, StartFailure};

/// Start a process for this worker.
pub(crate) struct SpawnOrder {
    pub(super) worker: WorkerId,
    pub(super) life: Arc<Life>,
}

/// Starts processes until there can be no more orders, then waits for their attendants.
pub(super) fn run(shared: &Arc<Shared>, orders: &Receiver<SpawnOrder>) {
    let mut attendants: Vec<JoinHandle<()>> = Vec::new();
    while let Ok(order) = orders.recv() {
        attendants.retain(|attendant| !attendant.is_finished());
        match catch_unwind(AssertUnwindSafe(|| start(shared, &order))) {
            Ok(Ok(Some(attendant))) => attendants.push(attendant),
            Ok(Ok(None)) => refuse(shared, order.worker, "it was not wanted any more"),
            Ok(Err((operation, error))) => {
                refuse(shared, order.worker, &format!("failed to {operation}: {error}"));
            }
            // The panic hook has said where. The kernel would kill all workers with this thread.
            Err(_) => refuse(shared, order.worker, "the thread that starts workers has panicked"),
        }
    }
    for attendant in attendants {
        // A panic there was reported by the panic hook.
        let _ = attendant.join();
    }
}

fn refuse(shared: &Shared, worker: WorkerId, reason: &str) {
    // The system may have more descriptors or memory in a moment: not permanent.
    let failure = StartFailure {
        permanent: false,
        reason: format!("{worker} could not be started: {reason}").into(),
    };
    shared.bury(worker, Event::StartFailed { worker, failure }, Facts::Nothing);
}

type Step = (&'static str, std::io::Error);

fn start(shared: &Arc<Shared>, order: &SpawnOrder) -> Result<Option<JoinHandle<()>>, Step> {
    if order.life.is_doomed() {
        return Ok(None);
    }
    require_address_space(SPACE_LEFT).map_err(|error| ("start its attendant thread", error))?;
    let (control, worker_end) =
        ControlSocket::pair().map_err(|error| ("make a control socket", error))?;
    let (ends, worker_ends) =
        Ends::open(shared.config.surroundings.stdio).map_err(|error| ("make a pipe", error))?;
    let mut command = command(&shared.config, worker_end);
    worker_ends.give(&mut command);
    let lease = shared.config.cores.as_ref().and_then(|cores| cores.of(order.worker.slot));
    let process = match &lease {
        None => Process::spawn(&mut command),
        Some(lease) => spawn_pinned(shared, order.worker, lease, &mut command),
    };
    let process = process.map_err(|error| ("start its process", error))?;
    // The host's copies of the worker's ends go with the command.
    drop(command);
    let process = Arc::new(process);
    if !order.life.begin(&process) {
        // Dropping the process kills and reaps it.
        return Ok(None);
    }
    let (worker, pid) = (order.worker, process.pid());
    shared.console.note(Level::DEBUG, move |pool| debug!(pool, %worker, pid, "worker spawned"));
    let writer = Writer {
        pool: shared.config.name.as_str().into(),
        worker: order.worker,
        pid: process.pid(),
    };
    let output = shared.console.attach(ends, writer);
    let newborn =
        Newborn { worker: order.worker, process, life: Arc::clone(&order.life), control, output };
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name(format!("brigade-{}", order.worker.slot))
        .spawn(move || {
            shared.own_this_thread();
            owner::take_role(Role::Driver);
            let worker = newborn.worker;
            // Nothing in there is known to panic, but an attendant that is gone would leave its tasks without an end.
            let attended = catch_unwind(AssertUnwindSafe(|| attendant::run(&shared, newborn)));
            if attended.is_err() {
                death::abandon(&shared, worker);
            }
        })
        .map(Some)
        .map_err(|error| ("start its attendant thread", error))
}

/// A process inherits the mask of the thread that starts it, so it never runs anywhere else.
fn spawn_pinned(
    shared: &Shared,
    worker: WorkerId,
    lease: &CoreLease,
    command: &mut Command,
) -> std::io::Result<Process> {
    for variable in THREAD_VARIABLES {
        let is_set = std::env::var_os(variable).is_some()
            || command.get_envs().any(|(key, _)| key == variable);
        if !is_set {
            command.env(variable, lease.cores().len().to_string());
        }
    }
    let spawned = lease.run_pinned(|pinned| {
        if !pinned.is_exact() {
            let (requested, effective) = (pinned.requested.clone(), pinned.effective.clone());
            shared.console.note(Level::WARN, move |pool| {
                warn!(pool, %worker, %requested, %effective, "the system lets a worker run on fewer cores than it has");
            });
        }
        Process::spawn(command)
    });
    spawned.map_err(std::io::Error::other)?
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
    config.surroundings.apply(&mut command);
    command
        .env(MARKER, format!("{PROTOCOL_VERSION}:{}", std::process::id()))
        .stdin(Stream::from(control));
    command
}
