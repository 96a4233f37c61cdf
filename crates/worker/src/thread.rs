//! Runs a worker on a thread of its host, for debuggers, coverage and sanitizers.
//!
//! It has the event loop, the panics and the context of any other worker, but no process: nothing
//! that it does to its process is undone, and it cannot be killed. A host that gives it up closes
//! the link, so it ends after its task.

use std::sync::Arc;

use brigade_sys::executable::build_identity;
use brigade_wire::worker_thread::WorkerThread;

use crate::event_loop::EventLoop;
use crate::functions::{Functions, Named};
use crate::memory_limit::MemoryLimit;
use crate::setup::Setup;
use crate::{context, exit_code, panic_capture};

/// Runs a worker on this thread, which ends then. Returns what would be its exit code.
pub fn run_on_thread(thread: WorkerThread) -> i32 {
    panic_capture::install();
    context::become_worker_thread(thread.worker, thread.depth);
    let functions = Arc::new(Functions::new(Named::new(), build_identity()));
    let WorkerThread { preload, initializer, finalizer, .. } = thread;
    let mut setup = Setup { preload, initializer, finalizer };
    let initialized = setup.initialize(&functions);
    let is_ready = initialized.is_ok();
    if thread.initialized.send(initialized).is_err() || !is_ready {
        return exit_code::INITIALIZER;
    }
    let (end, known) = (thread.end, Arc::clone(&functions));
    let mut event_loop = EventLoop::new(
        end.sender,
        end.receiver,
        thread.slots,
        None,
        thread.message_limit,
        known,
        MemoryLimit::none(),
    );
    match event_loop.run() {
        Ok(_) => {
            setup.finalize(&functions);
            exit_code::STOPPED
        }
        // Usually the host has given the worker up. Standard error is that of the program.
        Err(error) => error.exit_code(),
    }
}
