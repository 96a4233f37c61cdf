//! Actions of a process on itself that create the [`Surroundings`] of a run.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use brigade::{Handle, Pool, TaskError};
use brigade_testkit::pause;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::de::DeserializeOwned;
use tracing::{Event, Metadata, Subscriber, span};

use super::surroundings::Surroundings;

/// The pool of the current round, for user code that the pool calls.
static POOL: Mutex<Option<Arc<Pool>>> = Mutex::new(None);

/// Number of events that a subscriber has seen.
static EVENTS: AtomicU64 = AtomicU64::new(0);

/// The subscriber misbehaves at one event of this many.
const EVERY: u64 = 3;

/// Prepares this process.
///
/// # Errors
/// Returns an error if another subscriber is installed already.
pub(super) fn enter(surroundings: Surroundings) -> Result<(), String> {
    let subscribe = |conduct| {
        let subscriber = Disturbing { conduct };
        tracing::subscriber::set_global_default(subscriber).map_err(|error| error.to_string())
    };
    match surroundings {
        Surroundings::PanickingSubscriber => {
            let usual = std::panic::take_hook();
            // The run causes hundreds of these on purpose.
            std::panic::set_hook(Box::new(move |panic| {
                if panic.payload().downcast_ref::<&str>() != Some(&POISON) {
                    usual(panic);
                }
            }));
            subscribe(Conduct::Panics)
        }
        Surroundings::CuriousSubscriber => subscribe(Conduct::Asks),
        Surroundings::SlowSubscriber => subscribe(Conduct::TakesItsTime),
        _ => Ok(()),
    }
}

/// Makes a pool known to subscribers and wakers for as long as the guard lives.
pub(super) fn publish(pool: &Arc<Pool>) -> Published {
    *current() = Some(Arc::clone(pool));
    Published
}

/// See [`publish`].
pub(super) struct Published;

impl Drop for Published {
    fn drop(&mut self) {
        current().take();
    }
}

/// Limits the open files of this process to a few, until it is dropped.
pub(super) struct FewDescriptors(Rlimit);

impl FewDescriptors {
    pub(super) fn allow(number: u64) -> Self {
        let before = getrlimit(Resource::Nofile);
        // The limit may be raised again up to the hard limit, which stays.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(number), ..before });
        Self(before)
    }
}

impl Drop for FewDescriptors {
    fn drop(&mut self) {
        let Rlimit { current, maximum } = self.0;
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
    }
}

/// Waits for an outcome as a future whose waker blocks and queries the pool before it wakes.
pub(super) fn wait_with_blocking_waker<R: DeserializeOwned + 'static>(
    mut handle: Handle<R>,
    pause: Duration,
) -> Result<R, TaskError> {
    let (sender, woken) = sync_channel(1);
    let waker = Waker::from(Arc::new(Blocking { sender, pause }));
    let mut context = Context::from_waker(&waker);
    loop {
        match Pin::new(&mut handle).poll(&mut context) {
            Poll::Ready(outcome) => return outcome,
            // The watch bounds this wait.
            Poll::Pending => drop(woken.recv()),
        }
    }
}

struct Blocking {
    sender: SyncSender<()>,
    pause: Duration,
}

impl Wake for Blocking {
    fn wake(self: Arc<Self>) {
        pause(self.pause);
        ask();
        // An earlier notification is enough.
        let _ = self.sender.try_send(());
    }
}

/// User code that the pool calls and that uses the pool.
fn ask() {
    let Some(pool) = current().clone() else { return };
    assert!(format!("{pool:?}").contains("Pool"), "a pool has a name");
    drop((pool.worker_restarts(), pool.worker_pids()));
    // The holder of the last reference would end the pool, which is the round's task.
    drop(pool);
}

fn current() -> std::sync::MutexGuard<'static, Option<Arc<Pool>>> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone, Copy)]
enum Conduct {
    Panics,
    Asks,
    TakesItsTime,
}

/// A subscriber that misbehaves.
struct Disturbing {
    conduct: Conduct,
}

const POISON: &str = "a subscriber panics";

impl Subscriber for Disturbing {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, _: &Event<'_>) {
        if !EVENTS.fetch_add(1, Ordering::Relaxed).is_multiple_of(EVERY) {
            return;
        }
        match self.conduct {
            Conduct::Panics => std::panic::panic_any(POISON),
            Conduct::Asks => ask(),
            Conduct::TakesItsTime => pause(Duration::from_millis(1)),
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}
