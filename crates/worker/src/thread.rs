//! Runs a worker on a thread of its host, for debuggers, coverage and sanitizers.
//!
//! It has the event loop, the panics and the context of any other worker, but no process: nothing
//! that it does to its process is undone, and it cannot be killed. A host that gives it up closes
//! the link, so it ends after its task.

use brigade_wire::worker_thread::WorkerThread;

use crate::bootstrap::NewWorker;
use crate::context;
use crate::control::Host;
use crate::functions::Named;
use crate::memory_limit::MemoryLimit;
use crate::setup::WorkerSetup;
use crate::start;

/// Runs a worker on this thread, which ends then. Returns what would be its exit code.
pub fn run_on_thread(thread: WorkerThread) -> i32 {
    let WorkerThread { hello, end, slots, arguments, initialized } = thread;
    context::become_worker_thread(hello.worker, hello.depth);
    let connected = NewWorker {
        setup: WorkerSetup::new(&hello, arguments),
        host: Host::Thread(initialized),
        memory_limit: MemoryLimit::none(),
        arenas: None,
        sandbox: None,
        slots,
        hello,
    };
    start::work(connected, Named::new(), end.sender, end.receiver)
}
