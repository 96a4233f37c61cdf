//! A worker's process in texts for debugging.

use super::WorkerProcess;

brigade_sys::debug_fields! {
    impl WorkerProcess {
        |it| worker: it.worker, pid: it.pid(), state: it.state()
    }
}
