//! How a process finds out what it is: a host, or a worker that a host has started.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brigade_sys::descriptors;
use brigade_sys::fork::Origin;
use brigade_wire::codec;
use brigade_wire::handshake::FromWorkerControl;
use brigade_wire::link::{self, LinkReceiver, LinkSender, ipc};

use crate::bootstrap::{self, Connected, Link};
use crate::event_loop::EventLoop;
use crate::exit_code;
use crate::functions::{Functions, Named};
use crate::last_words::last_words;
use crate::marker::Marker;
use crate::panic_capture;
use crate::sections;

static INITIALISED: AtomicBool = AtomicBool::new(false);

/// Makes this process a worker if a host has started it as one; must be the first line of `main`.
///
/// In any other process it returns at once. In a worker it never returns: it connects to the host, runs the tasks
/// that come, and ends the process when the host says so, or with one of the [exit codes](exit_code) when something
/// is wrong. What stands before it in `main` runs in every worker too. Files
/// that it opens there without close-on-exec (not those of the standard library) are closed in a worker. Start no thread there: while one runs, a worker
/// cannot take the variable `BRIGADE_WORKER` out of its environment, which its tasks then hand on to what they start, and the
/// link of ipc-channel cannot be made. The rings work all the same, also where an allocator or a preloaded library starts a
/// thread before `main`.
pub fn init() {
    run(Program::default());
}

/// What a program says about itself when it is started as a worker.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) named: Named,
    /// Whether it takes tasks by name from hosts of other builds.
    pub(crate) server: bool,
    pub(crate) version: Option<String>,
}

/// See [`init`].
pub(crate) fn run(program: Program) {
    INITIALISED.store(true, Ordering::Relaxed);
    if Marker::is_ours() {
        process::exit(serve(program));
    }
    // One that was inherited from a worker. Its number could be that of another process some day.
    Marker::take_away();
}

/// Whether [`init`], or a [`Server`](crate::Server)'s `run`, was called in this process. A pool whose workers are this very program needs it.
pub fn is_initialised() -> bool {
    INITIALISED.load(Ordering::Relaxed)
}

/// Whether a host has started this process as a worker and [`init`] was not called: the program runs its `main` as
/// if it were the host.
pub fn started_as_worker_without_init() -> bool {
    !is_initialised() && Marker::is_ours()
}

/// The whole life of a worker; gives the exit code.
fn serve(program: Program) -> i32 {
    let (link, connected) = match bootstrap::connect(&program) {
        Ok(connected) => connected,
        Err(error) => {
            last_words(&codec::chain(&error));
            return error.exit_code();
        }
    };
    panic_capture::install();
    match link {
        Link::Ring(end) => work(connected, program.named, end.sender, end.receiver),
        Link::Ipc(channels) => {
            let end = ipc::worker_end(channels, link::message_limit(connected.message_limit));
            // ipc-channel leaves some of its descriptors open for the programs that a task starts.
            descriptors::close_on_exec_from(3);
            work(connected, program.named, end.sender, end.receiver)
        }
    }
}

/// From the link to the exit code.
fn work(
    connected: Connected,
    named: Named,
    sender: impl LinkSender,
    receiver: impl LinkReceiver,
) -> i32 {
    let Connected { slots, arenas, message_limit, control, host, mut setup } = connected;
    let functions = Arc::new(Functions::new(named, host));
    let origin = Origin::here();
    let initialised = setup.initialise(&functions);
    origin.end_copy();
    let told = match initialised {
        Ok(false) => Ok(()),
        Ok(true) => control.tell(&FromWorkerControl::Initialised),
        Err(reason) => {
            let told = control.tell(&FromWorkerControl::InitializerFailed { reason });
            if told.is_ok() {
                return exit_code::INITIALIZER;
            }
            told
        }
    };
    // Without an answer the host would wait for it until the initializer's time is over.
    if let Err(error) = told {
        last_words(&codec::chain(&error));
        // Here and not further up: descriptors that the initializer has closed must not be closed again.
        process::exit(error.exit_code());
    }
    let known = Arc::clone(&functions);
    let control = Arc::new(control);
    sections::begin(slots.clone(), Arc::clone(&control));
    let event_loop = EventLoop::new(sender, receiver, slots, arenas, message_limit, known);
    let code = match event_loop.run() {
        Ok(()) => {
            setup.finalise(&functions);
            origin.end_copy();
            exit_code::STOPPED
        }
        Err(error) => {
            last_words(&codec::chain(&error));
            error.exit_code()
        }
    };
    // Not earlier: the host may take the end of the control socket for the end of the worker.
    drop(control);
    code
}
