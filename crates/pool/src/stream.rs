//! Streams: inputs go in as they come, and items come out as they are ready.
//!
//! [`Pool::stream`](crate::Pool::stream) makes one. Any number of threads [`put`](Stream::put)
//! inputs into it, and any number [receive](Stream::recv) its items, as an iterator or as a
//! `futures_core::Stream` if they like. An input that fails gives an item with an error, so each
//! input is accounted for by its id.
//!
//! ```no_run
//! # use brigade::Pool;
//! fn load(path: String) -> Vec<u8> {
//!     std::fs::read(path).unwrap_or_default()
//! }
//!
//! # fn run(pool: Pool, paths: Vec<String>) -> Result<(), Box<dyn std::error::Error>> {
//! let stream = pool.stream(load).start()?;
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         for path in paths {
//!             if stream.put(path).is_err() {
//!                 break; // the consumer has closed the stream
//!             }
//!         }
//!         stream.finish();
//!     });
//!     for item in &stream {
//!         match item.result {
//!             Ok(bytes) => println!("{}: {} bytes", item.id, bytes.len()),
//!             Err(error) => eprintln!("{} is lost: {error}", item.id),
//!         }
//!     }
//! });
//! println!("{}", stream.report());
//! # Ok(())
//! # }
//! ```
//!
//! [`Pool::stream_flat`](crate::Pool::stream_flat) makes a stream whose function emits many items
//! for one input.
//!
//! # Limits
//! With the pool, and finished and not received, are at most `workers + output` tasks. A further
//! `per_worker * workers` inputs wait in the stream. `put` waits only if all of that is used up.
//! So a stream whose consumer is slow holds no worker, and the other streams of the pool go on.
//! Streams may be chained, with a consumer of one that puts into the next.
//!
//! A stream needs no thread: `put` submits on the producer's thread, and taking an item submits
//! the next input on the consumer's.
//!
//! # Invariants
//! - Each id gets one item, or is dropped by a reset or the end of the stream, which is counted.
//! - After a reset, no call that begins returns an item of an earlier input.
//! - No user code runs under the stream's lock. It is never held while that of the pool is taken.

mod arrivals;
mod builder;
mod consume;
mod control;
mod error;
mod flat;
#[cfg(feature = "futures")]
mod futures;
mod here;
mod item;
mod iter;
mod machine;
mod produce;
mod report;
mod task;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brigade_sys::sync::{Condvar, Mutex};

use crate::drive::Shared;
use crate::function_ref::FunctionRef;
use arrivals::Arrivals;
use brigade_task::function::Here;
use builder::Settings;
use machine::{Machine, Share};
use task::Task;

pub use brigade_worker::{Emit, EmitError};
pub use builder::StreamBuilder;
pub use error::{Full, PutErrorKind};
pub use item::Item;
pub use iter::Iter;
pub use report::StreamReport;

/// A stream of inputs of type `A` and items with results of type `R`; see the [module](self).
///
/// All methods take `&self`; share a stream by reference or by `Arc`. Dropping it cancels what has
/// not started, and waits for nothing. It may outlive the pool: then the inputs that are left get
/// items with errors.
pub struct Stream<A, R> {
    shared: Arc<Shared>,
    function: FunctionRef,
    /// The function, if it runs in this process.
    here: Option<Here<A, R>>,
    settings: Settings,
    machine: Mutex<Machine<Task<R>>>,
    /// Notified when there may be room for an input.
    room: Condvar,
    arrivals: Arrivals,
}

impl<A, R> Stream<A, R> {
    /// Locks the machine for `act`, after hearing of the tasks that have finished, and notifies
    /// consumers if there is something for them then. May run their wakers.
    fn with_machine<T>(&self, act: impl FnOnce(&mut Machine<Task<R>>) -> T) -> T {
        let (result, notify) = self.locked(act);
        if notify {
            self.arrivals.notify(&self.shared);
        }
        result
    }

    /// Does the same, but returns `true` if the caller has to notify the consumers.
    fn locked<T>(&self, act: impl FnOnce(&mut Machine<Task<R>>) -> T) -> (T, bool) {
        let mut machine = self.machine.lock();
        while let Some(id) = self.arrivals.completions.take() {
            machine.finished(id);
        }
        machine.set_share(share(&self.shared, &self.settings));
        let result = act(&mut machine);
        let ready = machine.is_ready() || machine.is_over();
        (result, self.arrivals.set_ready(ready))
    }
}

/// Returns the workers that a stream may use now.
fn share(shared: &Shared, settings: &Settings) -> Share {
    let mut all = shared.target.load(Ordering::Relaxed);
    if settings.flat {
        // Its tasks wait for a consumer, and others must not wait for that.
        all = all.saturating_sub(1).max(1);
    }
    let workers = settings.workers.map_or(all, |workers| workers.min(all));
    Share { workers, is_part: (1..all).contains(&workers) }
}

/// Cancels what has not started.
impl<A, R> Drop for Stream<A, R> {
    fn drop(&mut self) {
        if self.shared.is_forked() {
            return;
        }
        let (submitted, others) = self.machine.get_mut().close();
        for task in submitted.iter().chain(&others) {
            task.cancel(&self.shared);
        }
    }
}

impl<A, R> fmt::Debug for Stream<A, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Stream");
        if !self.shared.is_forked() {
            out.field("report", &self.report());
        }
        out.field("settings", &self.settings).finish_non_exhaustive()
    }
}

// Fails to compile if a stream can no longer be shared between threads.
const fn assert_shareable<T: Send + Sync>() {}
const _: () = assert_shareable::<Stream<std::cell::Cell<u8>, Vec<u8>>>();
