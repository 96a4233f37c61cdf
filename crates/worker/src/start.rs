//! How a process finds out what it is: a host, or a worker that a host has started.

use std::env;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use brigade_sys::descriptors;
use brigade_wire::codec;
use brigade_wire::link::{self, ipc};
use brigade_wire::version::MARKER;

use crate::bootstrap::{self, Connected, Link};
use crate::event_loop::EventLoop;
use crate::exit_code;
use crate::last_words::last_words;
use crate::panic_capture;

static INITIALISED: AtomicBool = AtomicBool::new(false);

/// Makes this process a worker if a host has started it as one; must be the first line of `main`.
///
/// In any other process it returns at once. In a worker it never returns: it connects to the host, runs the tasks
/// that come, and ends the process when the host says so, or with one of the [exit codes](exit_code) when something
/// is wrong. What stands before it in `main` runs in every worker too; no thread may have been started there.
pub fn init() {
    INITIALISED.store(true, Ordering::Relaxed);
    if is_marked() {
        process::exit(serve());
    }
}

/// Whether [`init`] was called in this process. A pool whose workers are this very program needs it.
pub fn is_initialised() -> bool {
    INITIALISED.load(Ordering::Relaxed)
}

/// Whether a host has started this process as a worker and [`init`] was not called: the program runs its `main` as
/// if it were the host.
pub fn started_as_worker_without_init() -> bool {
    !is_initialised() && is_marked()
}

fn is_marked() -> bool {
    env::var_os(MARKER).is_some()
}

/// The whole life of a worker; gives the exit code.
fn serve() -> i32 {
    let Connected { link, slots, arenas, message_limit, control } = match bootstrap::connect() {
        Ok(connected) => connected,
        Err(error) => {
            last_words(&codec::chain(&error));
            return error.exit_code();
        }
    };
    panic_capture::install();
    let ended = match link {
        Link::Ring(end) => {
            EventLoop::new(end.sender, end.receiver, slots, arenas, message_limit).run()
        }
        Link::Ipc(channels) => {
            let end = ipc::worker_end(channels, link::message_limit(message_limit));
            // ipc-channel leaves some of its descriptors open for the programs that a task starts.
            descriptors::close_on_exec_from(3);
            EventLoop::new(end.sender, end.receiver, slots, arenas, message_limit).run()
        }
    };
    // Not earlier: the host may take the end of the control socket for the end of the worker.
    drop(control);
    match ended {
        Ok(()) => exit_code::STOPPED,
        Err(error) => {
            last_words(&codec::chain(&error));
            error.exit_code()
        }
    }
}
