//! Detects if this process is a worker that a host has started, and runs it.

use std::hash::RandomState;
use std::mem::ManuallyDrop;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brigade_sys::clock;
use brigade_sys::executable::BuildIdentity;
use brigade_sys::fork::Origin;
use brigade_wire::codec;
use brigade_wire::handshake::FromWorkerControl;
use brigade_wire::link::{LinkReceiver, LinkSender};

use crate::bootstrap::{self, NewWorker, WorkerLink};
use crate::buffers;
use crate::control::{Control, Host};
use crate::copies;
use crate::event_loop::{EventLoop, LoopEnd};
use crate::exit_code;
use crate::functions::{Functions, Named};
use crate::marker::Marker;
use crate::panic_capture;
use crate::program::{Connectors, Program};
use crate::sandbox::WorkerSandbox;
use crate::sections;
use crate::stderr::report_end;

static INITIALIZED: AtomicBool = AtomicBool::new(false);

/// Turns this process into a worker if a host has started it as one. Must be the first line of
/// `main`.
///
/// In any other process it returns at once. In a worker it never returns: it connects to the host,
/// runs the tasks that arrive, and ends the process when the host asks it to, or with one of the
/// [exit codes](exit_code) if something is wrong.
///
/// Everything before it in `main` runs in every worker too. Files that are opened there without
/// close-on-exec (those of the standard library have it) are closed in a worker.
///
/// Start no thread before it. While another thread runs, a worker cannot remove the variable
/// `BRIGADE_WORKER` from its environment, so the processes that its tasks start inherit it, and an
/// ipc link cannot be created. Ring links work nevertheless, even if an allocator or a preloaded
/// library starts a thread before `main`.
pub fn init() {
    init_with(&[]);
}

/// Like [`init`], for a program that can also use other links than rings.
pub fn init_with(connectors: Connectors) {
    run(Program { connectors, ..Program::default() });
}

/// Implements [`init`] and [`Server::run`](crate::Server::run).
pub(crate) fn run(program: Program) {
    INITIALIZED.store(true, Ordering::Relaxed);
    if Marker::is_ours() {
        process::exit(serve(program));
    }
    // A marker that was inherited from a worker. Its process id could some day be that of another
    // process.
    Marker::remove();
}

/// Returns `true` if [`init`] or [`Server::run`](crate::Server::run) was called in this process,
/// which a pool requires if its workers are this same program.
pub fn is_initialized() -> bool {
    INITIALIZED.load(Ordering::Relaxed)
}

/// Returns `true` if a host has started this process as a worker but [`init`] was not called. Then
/// the program runs its `main` as if it were the host.
pub fn started_as_worker_without_init() -> bool {
    !is_initialized() && Marker::is_ours()
}

/// Runs a worker from the handshake to its end, and returns the exit code.
fn serve(program: Program) -> i32 {
    let (link, connected) = match bootstrap::connect(&program) {
        Ok(connected) => connected,
        Err(error) => {
            report_end(&codec::chain(&error));
            return error.exit_code();
        }
    };
    match link {
        WorkerLink::Ring(end) => work(connected, program.named, end.sender, end.receiver),
        WorkerLink::Connected(end) => work(connected, program.named, end.sender, end.receiver),
    }
}

/// Runs the initializer, the event loop and the finalizer, and returns the exit code.
pub(crate) fn work(
    mut connected: NewWorker,
    named: Named,
    sender: impl LinkSender,
    receiver: impl LinkReceiver,
) -> i32 {
    panic_capture::install();
    let functions = Functions::new(named, BuildIdentity::from_bytes(connected.hello.identity));
    let functions = Arc::new(functions);
    let origin = Origin::here();
    if let Some(arenas) = &connected.arenas {
        buffers::share(&arenas.results);
    }
    if !prepare(&mut connected, &functions, origin) {
        return exit_code::INITIALIZER;
    }
    let NewWorker { hello, host, slots, arenas, memory_limit, setup, .. } = connected;
    if let Host::Process(control) = &host {
        sections::begin(slots.clone(), Arc::clone(control));
    }
    if !slots.start() {
        return exit_code::STOPPED;
    }
    let limit = usize::try_from(hello.message_limit).unwrap_or(usize::MAX);
    let known = Arc::clone(&functions);
    let event_loop = EventLoop::new(sender, receiver, slots, arenas, limit, known, memory_limit);
    // The end of a process releases all of it at once.
    let mut event_loop = ManuallyDrop::new(event_loop);
    let copy = hello.copies.and_then(|grace| copies::next(&mut event_loop, grace));
    let copy = copy.map(ManuallyDrop::new);
    let code = match event_loop.run() {
        Ok(end) => {
            if let Some(copy) = &copy {
                copy.exit_soon();
            }
            if !matches!(end, LoopEnd::Passed(_)) {
                setup.finalize(&functions);
            }
            origin.end_copy();
            if let Some(copy) = copy {
                copy.leave(end);
            }
            exit_code::STOPPED
        }
        Err(error) => {
            // Standard error of a thread is that of the program, which has usually given it up.
            if matches!(host, Host::Process(_)) {
                report_end(&codec::chain(&error));
            }
            error.exit_code()
        }
    };
    match host {
        // Not earlier, because the host may mistake the end of the control socket for the end of
        // the worker.
        Host::Process(control) => drop(control),
        Host::Thread(_) => drop(ManuallyDrop::into_inner(event_loop)),
    }
    code
}

/// Runs the initializer, enters the sandbox, and tells the host, if that waits for it. Returns
/// `false` if something has failed.
fn prepare(connected: &mut NewWorker, functions: &Functions, origin: Origin) -> bool {
    let NewWorker { host, setup, sandbox, memory_limit, .. } = connected;
    let is_process = matches!(host, Host::Process(_));
    let is_awaited = is_process && (setup.is_awaited() || sandbox.is_some());
    if is_awaited {
        acquire_early();
    }
    let enter = |sandbox: Option<WorkerSandbox>| sandbox.map_or(Ok(()), WorkerSandbox::enter);
    let before = sandbox.take_if(|sandbox| sandbox.before_initializer);
    let initialized = enter(before).and_then(|()| setup.initialize(functions));
    origin.end_copy();
    let initialized = initialized.and_then(|()| enter(sandbox.take())).and_then(|()| {
        memory_limit.begin().map_err(|error| {
            format!("`max_worker_rss` cannot be checked after its initializer: {error}")
        })
    });
    if is_awaited {
        panic_capture::look_for_a_sandbox();
    }
    let is_ready = initialized.is_ok();
    match (host, initialized) {
        (Host::Thread(host), initialized) => return host.send(initialized).is_ok() && is_ready,
        (Host::Process(control), initialized) if is_awaited => answer(control, initialized),
        (_, Err(reason)) => report_end(&reason),
        (_, Ok(())) => {}
    }
    is_ready
}

/// Acquires what libraries would acquire when it is first needed.
///
/// An initializer may close files and system calls. Whatever this process opens, reads or maps
/// after that would fail, be slower, or end it. So all of that belongs before the initializer: here
/// if a library does it, or in the handshake ([`bootstrap`](crate::bootstrap)).
fn acquire_early() {
    // Finds the vDSO, without which each reading of the clock is a system call.
    clock::now();
    // Each thread asks the system for keys once; this one runs the tasks.
    let _ = RandomState::new();
    panic_capture::keep_names();
}

/// Tells the host, which waits for it, whether the worker is ready.
fn answer(control: &Control, initialized: Result<(), String>) {
    let message = match initialized {
        Ok(()) => {
            let takes_descriptors = control.takes_descriptors();
            FromWorkerControl::Initialized { takes_descriptors }
        }
        Err(reason) => FromWorkerControl::InitializerFailed { reason },
    };
    // Otherwise the host would wait for the answer until the initializer times out.
    if let Err(error) = control.send(&message) {
        report_end(&codec::chain(&error));
        // Exit here without returning: descriptors that the initializer has closed must not be
        // closed again.
        process::exit(error.exit_code());
    }
}
