//! The end of pools that still live when their process ends.
//!
//! A pool in a static, or in an `Arc` that another thread holds, is never dropped. An exit handler
//! does for it what its `Drop` does. It runs on the thread that ends the process, when `main` has
//! returned or the program has called `exit`, and it leaves alone:
//! - the copies of pools in a fork, which belong to another process,
//! - everything, in a worker or in a task on a thread: the pool of the task would wait for it.
//!
//! A pool that another thread is ending is waited for. One whose own thread ends the process cannot
//! be: that thread has to drive it.

use std::sync::{Arc, Once, Weak};

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::exit_handler;
use brigade_sys::sync::Mutex;

use crate::drive::Drive;

static LIVING: Mutex<Vec<Weak<Drive>>> = Mutex::new(Vec::new());

/// Lists a pool until it has ended.
pub(crate) fn listed(drive: Drive) -> Arc<Drive> {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| exit_handler::at_exit(at_exit));
    let drive = Arc::new(drive);
    let mut living = LIVING.lock();
    living.retain(|drive| drive.strong_count() > 0);
    living.push(Arc::downgrade(&drive));
    drive
}

extern "C" fn at_exit() {
    // Whatever has panicked, the process ends.
    let _ = catch_panic(end_all);
}

fn end_all() {
    if brigade_worker::context::depth().is_some() {
        return;
    }
    let living = std::mem::take(&mut *LIVING.lock());
    let living: Vec<Arc<Drive>> = living.iter().filter_map(Weak::upgrade).collect();
    let mode = |drive: &Drive| drive.shared.config.at_exit;
    for drive in &living {
        drive.begin_shutdown(mode(drive));
    }
    for drive in living {
        // A broken pool has reported its reason to every task.
        let _ = drive.shutdown(mode(&drive), None);
        if let Some(tasks) = drive.left_to_this_thread() {
            let pool = &drive.shared.config.supervisor.pool;
            let text = "a waker ends the process, which loses tasks of its pool";
            // The subscriber is code of the program.
            let _ = catch_panic(|| tracing::warn!(pool, tasks, "{text}"));
        }
        // What the program has put into the pool is not dropped while its other threads run.
        std::mem::forget(drive);
    }
}
