//! Workers that are threads of this process.
//!
//! Such a worker has a link over memory, whose end mark is its death: the thread sends it when it
//! ends, and a kill sends it at once. The thread cannot be killed, so a kill leaves it behind: it
//! ends when its task returns, and nobody reads what it sends.

use std::sync::Arc;
use std::thread;

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::executable::FunctionOffset;
use brigade_sys::process::Exit;
use brigade_sys::sealed::SealedView;
use brigade_sys::segment::Segment;
use brigade_wire::link::{memory, message_limit};
use brigade_wire::slots::SlotTable;
use brigade_wire::worker_thread::{RunWorker, WorkerThread};
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};

use crate::error::StartError;
use crate::workers::connection::{Connected, Connection, HostLink};
use crate::workers::settings::Settings;
use crate::workers::setup::Initializer;
use crate::workers::thread_end::{KILLED, ThreadEnd};
use crate::workers::worker_process::WorkerProcess;

/// Starts a worker as a thread, and waits for its initializer.
pub(crate) fn start(
    settings: &Settings,
    process: &Arc<WorkerProcess>,
    run: RunWorker,
) -> Result<Connected, StartError> {
    let worker = process.worker();
    let failed = |reason: String| StartError {
        is_permanent: false,
        reason: format!("{worker} cannot be started: {reason}"),
    };
    let slots = settings.credit;
    let segment = Segment::create("brigade", SlotTable::words(slots))
        .map_err(|error| failed(format!("cannot make its table of task states: {error}")))?;
    let segment = Arc::new(segment);
    let table = || SlotTable::new(Arc::clone(&segment), slots);
    let (host, end) = memory::pair(message_limit(settings.message_limit));
    // One place for the thread's own result, and one for the end of the wait.
    let (sender, initialized) = bounded(2);
    let mark = ThreadEnd { mark: end.sender.end_mark(), initialized: sender.clone() };
    let setup = &settings.setup;
    let thread = WorkerThread {
        worker,
        depth: settings.depth,
        end,
        slots: table(),
        message_limit: settings.message_limit,
        preload: open(setup.preload.as_ref()).map_err(failed)?,
        initializer: open(setup.initializer.as_ref()).map_err(failed)?,
        finalizer: setup.finalizer.map(FunctionOffset::raw),
        initialized: sender,
    };
    if !process.set_thread(mark) {
        return Err(failed("it is no longer needed".to_owned()));
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
    spawned.map_err(|error| failed(format!("cannot start its thread: {error}")))?;
    wait_for_initializer(settings, process, &initialized).map_err(failed)?;
    process.set_connected();
    let link = HostLink::Connected(Box::new(host.sender));
    let connection = Connection::new(link, Arc::new(table()), true);
    Ok(Connected { connection, receiver: Some(Box::new(host.receiver)), initializing: None })
}

/// Returns a view of an argument for a worker.
fn open(initializer: Option<&Initializer>) -> Result<Option<(u64, SealedView)>, String> {
    let Some(Initializer { function, argument, .. }) = initializer else { return Ok(None) };
    let view = SealedView::open(argument);
    let view = view.map_err(|error| format!("cannot read an initializer's argument: {error}"))?;
    Ok(Some((function.raw(), view)))
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
