//! Wakes callers whose outcomes have arrived, a few at a time: first come, first served, with
//! restricted concurrency (compare Dice and Kogan 2019) and chained wake-ups.
//!
//! A thread that wakes many others is often preempted by the first of them, and if all cores are
//! busy, the others sleep on until it runs again, which takes milliseconds. Many threads that run
//! at once also take the cores from the workers. So sleeping callers are woken in the order in
//! which their outcomes arrive: about half as many as there are cores are *called* at a time, and
//! each of them calls the next one when it runs, before any code of the user.
//!
//! - A caller that is called wakes up on the core of the thread that calls it and is about to sleep
//!   (`brigade_sys::nearby`). The kernel would often choose the core of a worker that spins.
//! - A caller that always finds its outcome without sleeping would keep the others from running. So
//!   while many wait, a caller joins the queue after some calls.
//! - A thread that was called may get no core for long, for example because its priority is low.
//!   While callers wait, the collector thread looks each [`LIMIT`]. If no caller has come to run
//!   since, it calls all of them.
//! - While the collector thread cannot look, callers are woken at once, and also while tasks are
//!   longer than a few microseconds: then callers sleep in each call, and workers would wait for
//!   them.

#[cfg(all(loom, test))]
mod loom;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use brigade_sys::clock::Monotonic;
use brigade_task::backend::Turn;

use crate::sync::{AtomicBool, AtomicU32, Mutex, Ordering, Parker, ThreadId};

/// The collector thread looks this often while callers wait to be called.
const LIMIT: Duration = Duration::from_millis(1);

/// The length of the queue times the number of calls that end, without anybody being called, before
/// one of their callers joins it. Calls of no-ops take a quarter of a millisecond then until all
/// have had their turn.
const CALLS: u32 = 256;

/// The least number of calls between two that join the queue: joining costs as much as several.
const MIN_CALLS: u32 = 4;

/// Stages of a ticket; changed under the queue's lock.
const SLEEPS: u32 = 0;
const CALLED: u32 = 1;
const ENDED: u32 = 2;

/// The callers to wake.
pub(crate) struct WakeQueue {
    state: Mutex<State>,
    /// Number of waiting tickets, for a look without the lock.
    length: AtomicU32,
    /// Calls that have ended since a caller was last called.
    calls: AtomicU32,
    /// `false` while callers are woken at once because tasks are not short.
    is_in_turn: AtomicBool,
    cores: u32,
    /// Wakes the collector thread, which then watches the queue.
    wake_watcher: Box<dyn Fn() + Send + Sync>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Arc<Ticket>>,
    /// Number of tickets that were called and have not ended.
    called: usize,
    /// `true` if a called ticket has ended since the collector thread last looked.
    moves: bool,
    /// `true` from the moment the collector thread is woken to watch until the queue is empty.
    is_watched: bool,
    /// `true` while the collector thread cannot look.
    is_unlimited: bool,
}

/// The place of a sleeping caller.
#[derive(Debug)]
pub(crate) struct Ticket {
    queue: Arc<WakeQueue>,
    parker: Parker,
    stage: AtomicU32,
}

/// The current thread's ticket, for as long as it may be asleep.
#[derive(Debug)]
pub(crate) struct Seat(Arc<Ticket>);

impl WakeQueue {
    /// `wake_watcher` wakes the collector thread, so that it calls [`look`](Self::look).
    pub(crate) fn new(cores: usize, wake_watcher: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::default()),
            length: AtomicU32::new(0),
            calls: AtomicU32::new(0),
            is_in_turn: AtomicBool::new(true),
            cores: u32::try_from(cores).unwrap_or(u32::MAX),
            wake_watcher: Box::new(wake_watcher),
        })
    }

    /// Returns the place of the current thread, which is about to sleep.
    pub(crate) fn seat(self: &Arc<Self>) -> Seat {
        let parker = Parker::new(self.is_in_turn.load(Ordering::Relaxed));
        let stage = AtomicU32::new(SLEEPS);
        Seat(Arc::new(Ticket { queue: Arc::clone(self), parker, stage }))
    }

    /// Lets others run after a call that has ended, if it is their turn.
    #[inline]
    pub(crate) fn take_turns(self: &Arc<Self>) {
        if self.is_turn_over() {
            self.let_others_run();
        }
    }

    #[inline]
    fn is_turn_over(&self) -> bool {
        let length = self.length.load(Ordering::Relaxed);
        if length < self.cores.max(1) {
            return false;
        }
        let most = (CALLS / length).max(MIN_CALLS);
        let is_over = self.calls.fetch_add(1, Ordering::Relaxed) >= most;
        if is_over {
            self.calls.store(0, Ordering::Relaxed);
        }
        is_over
    }

    fn let_others_run(self: &Arc<Self>) {
        let seat = self.seat();
        Arc::clone(&seat.0).wake();
        while seat.0.stage.load(Ordering::Acquire) == SLEEPS {
            seat.0.parker.park(None);
        }
    }

    /// Calls all callers if none of those that were called has come to run since the last look.
    ///
    /// The collector thread calls this after each of its sleeps, with the time `due` that the
    /// previous call has returned, and does so at that time at the latest.
    pub(crate) fn look(&self, due: Option<Monotonic>, now: Monotonic) -> Option<Monotonic> {
        let is_due = due.is_some_and(|due| due <= now);
        let mut next = None;
        self.change(|state| {
            if is_due && state.waiting.is_empty() {
                state.is_watched = false;
            }
            if state.is_watched {
                next = due.filter(|_| !is_due).or_else(|| Some(now.saturating_add(LIMIT)));
            }
            is_due && !std::mem::take(&mut state.moves)
        });
        next
    }

    /// Sets whether callers are woken in turn, and not at once.
    #[inline]
    pub(crate) fn set_in_turn(&self, is_in_turn: bool) {
        // Mostly it stays the same, and others read the cache line.
        if self.is_in_turn.load(Ordering::Relaxed) != is_in_turn {
            self.is_in_turn.store(is_in_turn, Ordering::Relaxed);
        }
    }

    /// Records whether the collector thread cannot look. Callers are woken at once meanwhile.
    pub(crate) fn set_unlimited(&self, is_unlimited: bool) {
        self.change(|state| {
            state.is_unlimited = is_unlimited;
            false
        });
    }

    /// Changes the state and calls those callers who may be called then, or all of them if `act`
    /// returns `true`.
    fn change(&self, act: impl FnOnce(&mut State) -> bool) {
        let most = (self.cores as usize / 2).max(1);
        let mut state = self.state.lock();
        let is_in_turn = self.is_in_turn.load(Ordering::Relaxed) && !state.is_unlimited;
        let all = act(&mut state) || !is_in_turn;
        while all || state.called < most {
            let Some(ticket) = state.call_next() else { break };
            self.calls.store(0, Ordering::Relaxed);
            // Without the lock, which the woken thread takes first.
            drop(state);
            ticket.parker.unpark();
            state = self.state.lock();
        }
        let length = state.waiting.len();
        self.length.store(u32::try_from(length).unwrap_or(u32::MAX), Ordering::Relaxed);
        let begins = length > 0 && !std::mem::replace(&mut state.is_watched, true);
        drop(state);
        if begins {
            (self.wake_watcher)();
        }
    }
}

impl State {
    /// Calls the first caller that still sleeps.
    fn call_next(&mut self) -> Option<Arc<Ticket>> {
        loop {
            let ticket = self.waiting.pop_front()?;
            if ticket.stage.load(Ordering::Relaxed) == SLEEPS {
                ticket.stage.store(CALLED, Ordering::Release);
                self.called += 1;
                return Some(ticket);
            }
        }
    }
}

impl Turn for Ticket {
    fn is_of(&self, thread: ThreadId) -> bool {
        self.parker.thread() == thread
    }

    /// Unless the thread has stopped sleeping by then.
    fn wake(self: Arc<Self>) {
        let queue = Arc::clone(&self.queue);
        queue.change(|state| {
            state.waiting.push_back(self);
            false
        });
    }
}

impl Ticket {
    fn end(&self) {
        self.queue.change(|state| {
            if self.stage.load(Ordering::Relaxed) == CALLED {
                state.called -= 1;
                state.moves = true;
            }
            self.stage.store(ENDED, Ordering::Relaxed);
            false
        });
    }
}

impl Seat {
    /// Returns the ticket to pass to whoever wakes the thread.
    pub(crate) fn ticket(&self) -> Arc<Ticket> {
        Arc::clone(&self.0)
    }

    /// Returns the way in which this thread sleeps here.
    pub(crate) fn parker(&self) -> &Parker {
        &self.0.parker
    }
}

/// Ends the sleep: if the thread was called, the next one is.
impl Drop for Seat {
    fn drop(&mut self) {
        self.0.end();
    }
}

brigade_sys::debug_fields!(impl WakeQueue { length });
