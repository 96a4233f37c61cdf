//! Workers that are threads of this process.
//!
//! Such a worker has a link over memory, whose end mark is its death: the thread sends it when it
//! ends, and a kill sends it at once. The thread cannot be killed, so a kill leaves it behind: it
//! ends when its task returns, and nobody reads what it sends.

use std::sync::Arc;
use std::thread;

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::process::Exit;
use brigade_sys::sealed::SealedView;
use brigade_sys::segment::Segment;
use brigade_wire::link::{memory, message_limit};
use brigade_wire::slots::SlotTable;
use brigade_wire::worker_thread::{RunWorker, WorkerThread};
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};

use crate::workers::connection::{Connected, Connection, HostLink};
use crate::workers::greeting::hello;
use crate::workers::settings::Settings;
use crate::workers::setup::Initializer;
use crate::workers::thread_end::{KILLED, ThreadEnd};
use crate::workers::worker_process::WorkerProcess;

/// Starts a worker as a thread, and waits for its initializer. The error can follow "the worker
/// cannot be started: ".
pub(crate) fn start(
    settings: &Settings,
    process: &Arc<WorkerProcess>,
    run: RunWorker,
) -> Result<Connected, String> {
    let worker = process.worker();
    let slots = settings.credit;
    let segment = Segment::create("brigade", SlotTable::words(slots))
        .map_err(|error| format!("cannot make its table of task states: {error}"))?;
    let segment = Arc::new(segment);
    let table = || SlotTable::new(Arc::clone(&segment), slots);
    let (host, end) = memory::pair(message_limit(settings.message_limit));
    // One place for the thread's own result, and one for the end of the wait.
    let (sender, initialized) = bounded(2);
    let mark = ThreadEnd { mark: end.sender.end_mark(), initialized: sender.clone() };
    let argument = |it: &Option<Initializer>| {
        let view = it.as_ref().map(|it| SealedView::open(&it.argument)).transpose();
        view.map_err(|error| format!("cannot read an initializer's argument: {error}"))
    };
    let thread = WorkerThread {
        hello: hello(settings, worker, false),
        end,
        slots: table(),
        arguments: [argument(&settings.setup.preload)?, argument(&settings.setup.initializer)?],
        initialized: sender,
    };
    if !process.set_thread(mark) {
        return Err("it is no longer needed".to_owned());
    }
    let (ended, panicked) = (Arc::clone(process), thread.initialized.clone());
    let body = move || {
        let code = catch_panic(|| run(thread));
        if code.is_err() {
            // Somebody may wait for the initializer.
            let _ = panicked.try_send(Err("its thread panicked".to_owned()));
        }
        ended.give_up_thread(code.map_or(Exit::Unknown, Exit::Code));
    };
    let spawned =
        thread::Builder::new().name(format!("brigade-worker-{}", worker.slot)).spawn(body);
    spawned.map_err(|error| format!("cannot start its thread: {error}"))?;
    wait_for_initializer(settings, process, &initialized)?;
    process.set_connected();
    let link = HostLink::Connected(Box::new(host.sender));
    let connection = Connection::new(link, Arc::new(table()), true);
    Ok(Connected { connection, receiver: Some(Box::new(host.receiver)), initializing: None })
}

fn wait_for_initializer(
    settings: &Settings,
    process: &WorkerProcess,
    initialized: &Receiver<Result<(), String>>,
) -> Result<(), String> {
    let limit = settings.setup.timeout;
    match initialized.recv_timeout(limit) {
        Ok(result) => result,
        // `process` keeps a sender, so this is a timeout.
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            process.give_up_thread(KILLED);
            Err(format!(
                "its initializer did not return within {limit:?} (initializer_timeout); its thread \
                 goes on"
            ))
        }
    }
}
