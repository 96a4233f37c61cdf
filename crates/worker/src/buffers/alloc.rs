//! Allocates buffers in the arena of this worker.

use std::sync::{Arc, OnceLock};

use brigade_sys::arena::{AllocError, ResultArena, WhenFull};
use brigade_wire::link::ARENA_THRESHOLD;
use brigade_wire::shared::{SharedBuf, SharedBufMut};

use crate::context;

/// The arena of this worker; empty in a process that has none.
static RESULTS: OnceLock<Arc<ResultArena>> = OnceLock::new();

/// Makes the arena available to all threads of this process.
pub(crate) fn share(results: &Arc<ResultArena>) {
    // A process is a worker at most once.
    let _ = RESULTS.set(Arc::clone(results));
}

/// Allocates a buffer of `length` bytes with arbitrary content, to be written and then sent to the
/// host without a copy.
///
/// Blocks while the buffers of this worker that are in use leave too little of its share of the
/// pool's `buffer_budget`. A task that is retried does not wait.
///
/// Without shared memory (over the ipc link, with little address space, and outside of a worker)
/// the buffer is on the heap and its bytes are copied into the message.
///
/// ```no_run
/// use brigade::SharedBuf;
///
/// fn gradient(length: usize) -> Result<SharedBuf, String> {
///     let mut buffer = brigade::worker::alloc(length).map_err(|error| error.to_string())?;
///     for (byte, value) in buffer.iter_mut().zip((0..=255).cycle()) {
///         *byte = value;
///     }
///     Ok(buffer.freeze())
/// }
/// ```
///
/// # Errors
/// If the system has no memory, and in a fork of the worker.
pub fn alloc(length: usize) -> Result<SharedBufMut, AllocError> {
    let is_retried = context::attempt().is_some_and(|attempt| attempt.get() > 1);
    allocate(length, if is_retried { WhenFull::Exceed } else { WhenFull::Wait })
}

/// Allocates a buffer like [`alloc`], but returns an error instead of waiting.
///
/// # Errors
/// As `alloc`, and if the share of this worker is used up.
pub fn try_alloc(length: usize) -> Result<SharedBufMut, AllocError> {
    allocate(length, WhenFull::Fail)
}

fn allocate(length: usize, when_full: WhenFull) -> Result<SharedBufMut, AllocError> {
    match RESULTS.get() {
        Some(results) => SharedBufMut::in_results(results, length, when_full),
        None => Ok(SharedBufMut::on_heap(length)),
    }
}

/// Copies a large buffer that only this process can read to where the host reads it. The copy into
/// the message would take longer.
pub(super) fn in_shared_memory(buffer: SharedBuf) -> SharedBuf {
    if buffer.len() < ARENA_THRESHOLD || buffer.name_for_host().is_some() {
        return buffer;
    }
    let Some(Ok(mut copy)) = RESULTS
        .get()
        .map(|results| SharedBufMut::in_results(results, buffer.len(), WhenFull::Exceed))
    else {
        return buffer;
    };
    copy.copy_from_slice(&buffer);
    copy.freeze()
}
