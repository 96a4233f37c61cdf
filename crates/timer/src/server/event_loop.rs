//! The server's loop: wait, read, decide, act.
//!
//! Everything is owned by the thread that turns the loop; others have the waker and two atomics ([`Shared`]).
//!
//! The race avoided: a worker releases its timer just before the deadline, and the deadline is served first. So when a
//! deadline has come, everything that was sent until then is read before anybody is reaped; the time that counts is
//! taken before the reading.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brigade_sys::clock::{Monotonic, now};
use brigade_sys::deadline_timer::DeadlineTimer;
use brigade_sys::poller::Poller;
use brigade_sys::process::{ForeignProcess, Swept};
use brigade_sys::request_socket::Listener;
use brigade_sys::scheduling::prefer_short_slices;

use super::Shared;
use super::connections::{Connections, FIRST_TOKEN, News};
use super::contained::{contained, log};
use crate::event::{ExpiredTimer, TimerEvent};
use crate::machine::{Action, Event, Machine, Reaped, WorkerId};
use crate::reaper::{Expiry, Reap, Reaper};
use crate::request::{Answer, Request};

const TIMER: u64 = 0;
const WAKER: u64 = 1;
const LISTENER: u64 = 2;

/// So many clients are admitted in a turn: whoever connects in a loop must not hold up the deadlines of others.
const ADMITTED_PER_TURN: usize = 8;

/// The code of the server's owner.
pub(super) struct Hooks {
    pub(super) reaper: Box<dyn Reaper>,
    pub(super) before_reap: Vec<BeforeReap>,
    pub(super) on_event: Vec<Observer>,
}

pub(super) type BeforeReap = Box<dyn FnMut(&Expiry<'_>) + Send>;
pub(super) type Observer = Box<dyn FnMut(&TimerEvent) + Send>;

pub(super) struct EventLoop {
    shared: Arc<Shared>,
    poller: Poller,
    timer: DeadlineTimer,
    /// What the timer is set to, unless that has come.
    set_to: Option<u64>,
    /// The timer is readable, and stays so until it is set again.
    fired: bool,
    connections: Connections,
    machine: Machine,
    hooks: Hooks,
    /// The worker that has exited last.
    ended: Option<ForeignProcess>,
    // Kept for their memory.
    ready: Vec<u64>,
    news: Vec<News>,
    outbox: Vec<Action>,
}

impl fmt::Debug for EventLoop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connections, machine, .. } = self;
        let mut out = out.debug_struct("EventLoop");
        out.field("connections", connections).field("machine", machine).finish_non_exhaustive()
    }
}

impl EventLoop {
    pub(super) fn new(
        listener: Listener,
        shared: Arc<Shared>,
        hooks: Hooks,
        any_user: bool,
    ) -> io::Result<Self> {
        let (mut poller, timer) = (Poller::new()?, DeadlineTimer::new()?);
        let connections = Connections::new(listener, any_user);
        poller.add(&timer, TIMER)?;
        poller.add(&shared.waker, WAKER)?;
        poller.add(connections.listener(), LISTENER)?;
        Ok(Self {
            shared,
            poller,
            timer,
            set_to: None,
            fired: false,
            connections,
            machine: Machine::default(),
            hooks,
            ended: None,
            ready: Vec::new(),
            news: Vec::new(),
            outbox: Vec::new(),
        })
    }

    /// Turns until it is told to stop.
    pub(super) fn run(&mut self) {
        if let Err(error) = prefer_short_slices() {
            log(|| tracing::debug!(%error, "the timer's thread is scheduled like any other"));
        }
        self.report(&TimerEvent::Started);
        while !self.shared.stopping.load(Ordering::Acquire) {
            if let Err(error) = self.turn(true) {
                // Waiting itself does not work. To go on would be to spin.
                self.report(&TimerEvent::TurnFailed { reason: error.to_string() });
                break;
            }
        }
        self.report(&TimerEvent::Stopped);
    }

    /// Deals with all that is there, after waiting for something if `wait` says so.
    pub(super) fn turn(&mut self, wait: bool) -> io::Result<()> {
        self.poller.ready(wait, &mut self.ready)?;
        let somebody_waits = self.read();
        let mut time = now().as_nanos();
        if self.machine.next_deadline().is_some_and(|deadline| deadline <= time) {
            time = now().as_nanos();
            self.poller.ready(false, &mut self.ready)?;
            // Who has not been admitted has nothing to release.
            self.read();
            self.machine.handle(time, Event::Tick, &mut self.outbox);
            self.act();
        }
        if somebody_waits {
            self.admit();
            self.tell_news();
        }
        self.set_timer();
        self.shared.last_progress.store(now().as_nanos(), Ordering::Release);
        Ok(())
    }

    /// True when somebody wants to connect.
    fn read(&mut self) -> bool {
        let mut somebody_waits = false;
        let mut ready = std::mem::take(&mut self.ready);
        for token in ready.drain(..) {
            match token {
                TIMER => (self.set_to, self.fired) = (None, true),
                WAKER => self.shared.waker.drain(),
                LISTENER => somebody_waits = true,
                _ => {
                    debug_assert!(token >= FIRST_TOKEN);
                    self.connections.read(token, &mut self.poller, &mut self.news);
                }
            }
            self.tell_news();
        }
        self.ready = ready;
        somebody_waits
    }

    fn admit(&mut self) {
        for _ in 0..ADMITTED_PER_TURN {
            match self.connections.accept(&mut self.poller, &mut self.news) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    let reason = format!("a client could not be admitted: {error}");
                    self.report(&TimerEvent::TurnFailed { reason });
                    break;
                }
            }
        }
    }

    fn tell_news(&mut self) {
        let time = now().as_nanos();
        let mut all = std::mem::take(&mut self.news);
        for news in all.drain(..) {
            let event = match news {
                News::Registered { worker, pid } => Event::Registered { worker, pid },
                News::Exited { worker, process } => {
                    self.ended = Some(process);
                    Event::Exited { worker }
                }
                News::Request { worker, connection, request } => match request {
                    Request::Acquire { scope, deadline, ladder } => {
                        Event::Acquire { worker, scope, deadline, ladder }
                    }
                    Request::Release { scope } => Event::Release { worker, scope },
                    Request::Count => {
                        let count = self.machine.timers(worker);
                        self.connections.answer(connection, &Answer::Count(count as u64));
                        continue;
                    }
                    Request::Hello { .. } => continue,
                },
                News::Refused { pid, reason } => {
                    self.report(&TimerEvent::Refused { pid, reason });
                    continue;
                }
            };
            self.machine.handle(time, event, &mut self.outbox);
            self.act();
        }
        self.news = all;
        self.ended = None;
    }

    /// Does what the machine wants done.
    fn act(&mut self) {
        let mut actions = Vec::new();
        while !self.outbox.is_empty() {
            std::mem::swap(&mut self.outbox, &mut actions);
            for action in actions.drain(..) {
                match action {
                    Action::Report(event) => self.report(&event),
                    Action::Disconnect { worker, reason } => {
                        self.connections.disconnect(worker, Some(&reason), &mut self.poller);
                    }
                    Action::CleanUp { pid, deadline } => {
                        self.connections.spend_descriptors();
                        let swept = self.clean_up();
                        self.connections.save_descriptors();
                        let lateness = now().saturating_since(deadline);
                        self.report(&TimerEvent::Killed { pid, lateness, swept });
                    }
                    Action::Reap { worker, timers, step } => {
                        self.connections.spend_descriptors();
                        let result = self.reap(worker, &timers, step);
                        self.connections.save_descriptors();
                        let event = Event::Reaped { worker, result };
                        self.machine.handle(now().as_nanos(), event, &mut self.outbox);
                    }
                }
            }
        }
    }

    fn reap(&mut self, worker: WorkerId, timers: &[ExpiredTimer], step: u32) -> Reaped {
        let Some(process) = self.connections.process(worker) else {
            return Reaped::Gone(Swept::default());
        };
        let expiry = Expiry { process, timers, step };
        for hook in &mut self.hooks.before_reap {
            if let Err(reason) = contained(|| hook(&expiry)) {
                log(|| tracing::error!(reason, "the hook before a reap has panicked"));
            }
        }
        match contained(|| self.hooks.reaper.reap(&expiry)) {
            Ok(Ok(Reap::Gone(swept))) => Reaped::Gone(swept),
            Ok(Ok(Reap::Kept)) => Reaped::Kept("the reaper has kept it".into()),
            Ok(Ok(Reap::Again(pause))) => Reaped::Again(pause),
            Ok(Ok(Reap::Logged)) => Reaped::Logged,
            Ok(Err(error)) => Reaped::Kept(error.to_string()),
            Err(reason) => Reaped::Panicked(reason),
        }
    }

    fn clean_up(&mut self) -> Swept {
        let Some(process) = &self.ended else { return Swept::default() };
        contained(|| self.hooks.reaper.clean_up(process)).unwrap_or_else(|reason| {
            log(|| tracing::error!(reason, "the reaper has panicked while it cleaned up"));
            Swept::default()
        })
    }

    fn report(&mut self, event: &TimerEvent) {
        log(|| event.trace());
        for observer in &mut self.hooks.on_event {
            if let Err(reason) = contained(|| observer(event)) {
                log(|| tracing::error!(reason, "an observer of the timer server has panicked"));
            }
        }
    }

    /// Only an earlier deadline sets the timer anew; one that was released costs a wake-up, once.
    fn set_timer(&mut self) {
        let next = self.machine.next_deadline();
        let earlier = next.is_some_and(|next| self.set_to.is_none_or(|set_to| next < set_to));
        if !earlier && !self.fired {
            return;
        }
        match self.timer.set(next.map(Monotonic::from_nanos)) {
            Ok(()) => (self.set_to, self.fired) = (next, false),
            Err(error) => {
                let reason = format!("the timer could not be set: {error}");
                self.report(&TimerEvent::TurnFailed { reason });
            }
        }
    }
}
