//! The server's loop: wait, read, decide, act.
//!
//! The thread that runs the loop owns everything in it. Other threads share only the waker and two
//! atomics ([`Shared`]).
//!
//! The loop avoids this race: a process releases its timer just before the deadline, and the
//! deadline is served first. So when a deadline has passed, everything that was sent until then is
//! read before any process is reaped; the time that counts is taken before the reading.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::clock::{Monotonic, now};
use brigade_sys::deadline_timer::DeadlineTimer;
use brigade_sys::poller::Poller;
use brigade_sys::process::{ForeignProcess, Swept};
use brigade_sys::request_socket::Listener;
use brigade_sys::scheduling::prefer_short_slices;

use super::Shared;
use super::connections::{ConnectionEvent, Connections, FIRST_TOKEN};
use crate::event::{ExpiredTimer, TimerEvent};
use crate::machine::{Action, ClientId, Event, Machine, Reaped};
use crate::reaper::{Expiry, Reap, Reaper};
use crate::request::{Answer, TimerRequest};

const TIMER: u64 = 0;
const WAKER: u64 = 1;
const LISTENER: u64 = 2;

/// Maximum number of clients accepted per turn, so that one that connects in a loop does not hold
/// up deadlines.
const ADMITTED_PER_TURN: usize = 8;

/// Code of the server's owner.
pub(super) struct Hooks {
    pub(super) reaper: Box<dyn Reaper>,
    pub(super) before_reap: Vec<BeforeReap>,
    pub(super) on_event: Vec<Observer>,
}

pub(super) type BeforeReap = Box<dyn FnMut(&Expiry<'_>) + Send>;
pub(super) type Observer = Box<dyn FnMut(&TimerEvent) + Send>;

pub(super) struct EventLoop {
    shared: Arc<Shared>,
    poller: Arc<Poller>,
    timer: DeadlineTimer,
    /// The deadline that the timer is set to; `None` once it has fired.
    set_to: Option<Monotonic>,
    /// `true` if the timer is readable, as it stays until it is set again.
    fired: bool,
    connections: Connections,
    machine: Machine,
    hooks: Hooks,
    /// The process that exited last, while its exit is handled.
    ended: Option<ForeignProcess>,
    // Empty between turns; kept to reuse their memory.
    ready: Vec<u64>,
    outbox: Vec<Action>,
}

brigade_sys::debug_fields!(impl EventLoop { connections, machine });

impl EventLoop {
    pub(super) fn new(
        listener: Listener,
        shared: Arc<Shared>,
        hooks: Hooks,
        any_user: bool,
    ) -> io::Result<Self> {
        let (poller, timer) = (Arc::new(Poller::new()?), DeadlineTimer::new()?);
        let connections = Connections::new(listener, any_user, Arc::clone(&poller));
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
            outbox: Vec::new(),
        })
    }

    /// Runs turns until the owner stops the server.
    pub(super) fn run(&mut self) {
        if let Err(error) = prefer_short_slices() {
            log(
                || tracing::debug!(%error, "cannot request short scheduling slices for the timer thread"),
            );
        }
        self.report(&TimerEvent::Started);
        while !self.shared.stopping.load(Ordering::Acquire) {
            if let Err(error) = self.turn(true) {
                // Waiting itself fails. Going on would busy-loop.
                self.report(&TimerEvent::TurnFailed { reason: error.to_string() });
                break;
            }
        }
        self.report(&TimerEvent::Stopped);
    }

    /// Serves everything that is ready. If `wait` is `true`, it first blocks until something is.
    pub(super) fn turn(&mut self, wait: bool) -> io::Result<()> {
        self.poller.ready(wait, &mut self.ready)?;
        let client_waits = self.read();
        let mut time = now();
        if self.machine.next_deadline().is_some_and(|deadline| deadline <= time) {
            time = now();
            self.poller.ready(false, &mut self.ready)?;
            // New connections can wait: a client that is not accepted yet has nothing to release.
            self.read();
            self.machine.handle(time, Event::Tick, &mut self.outbox);
            self.act();
        }
        if client_waits {
            self.admit();
            self.handle_events();
        }
        self.set_timer();
        self.shared.last_progress.store(now().as_nanos(), Ordering::Release);
        Ok(())
    }

    /// Reads all ready tokens. Returns `true` if a client wants to connect.
    fn read(&mut self) -> bool {
        let mut client_waits = false;
        let mut ready = std::mem::take(&mut self.ready);
        for token in ready.drain(..) {
            match token {
                TIMER => (self.set_to, self.fired) = (None, true),
                WAKER => self.shared.waker.drain(),
                LISTENER => client_waits = true,
                _ => {
                    debug_assert!(token >= FIRST_TOKEN);
                    self.connections.read(token);
                }
            }
            self.handle_events();
        }
        self.ready = ready;
        client_waits
    }

    fn admit(&mut self) {
        for _ in 0..ADMITTED_PER_TURN {
            match self.connections.accept() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    let reason = format!("cannot accept a client: {error}");
                    self.report(&TimerEvent::TurnFailed { reason });
                    break;
                }
            }
        }
    }

    fn handle_events(&mut self) {
        let time = now();
        let mut all = std::mem::take(&mut self.connections.events);
        for event in all.drain(..) {
            let event = match event {
                ConnectionEvent::Registered { client, pid } => Event::Registered { client, pid },
                ConnectionEvent::Exited { client, process } => {
                    self.ended = Some(process);
                    Event::Exited { client }
                }
                ConnectionEvent::Request { client, connection, request } => match request {
                    TimerRequest::Acquire { scope, deadline, escalation } => {
                        let deadline = Monotonic::from_nanos(deadline);
                        Event::Acquire { client, scope, deadline, escalation }
                    }
                    TimerRequest::Release { scope } => Event::Release { client, scope },
                    TimerRequest::Count => {
                        let count = self.machine.timers(client);
                        self.connections.answer(connection, &Answer::Count(count as u64));
                        continue;
                    }
                    TimerRequest::Hello { .. } => continue,
                },
                ConnectionEvent::Refused { pid, reason } => {
                    self.report(&TimerEvent::Refused { pid, reason });
                    continue;
                }
            };
            self.machine.handle(time, event, &mut self.outbox);
            self.act();
        }
        self.connections.events = all;
        self.ended = None;
    }

    /// Carries out the actions of the machine.
    fn act(&mut self) {
        let mut actions = Vec::new();
        while !self.outbox.is_empty() {
            std::mem::swap(&mut self.outbox, &mut actions);
            for action in actions.drain(..) {
                match action {
                    Action::Report(event) => self.report(&event),
                    Action::Disconnect { client, reason } => {
                        self.connections.disconnect(client, Some(&reason));
                    }
                    Action::CleanUp { pid, deadline } => {
                        self.connections.release_reserve();
                        let swept = self.clean_up();
                        self.connections.fill_reserve();
                        let lateness = now().saturating_since(deadline);
                        self.report(&TimerEvent::Killed { pid, lateness, swept });
                    }
                    Action::Reap { client, timers, step } => {
                        self.connections.release_reserve();
                        let result = self.reap(client, &timers, step);
                        self.connections.fill_reserve();
                        let event = Event::Reaped { client, result };
                        self.machine.handle(now(), event, &mut self.outbox);
                    }
                }
            }
        }
    }

    fn reap(&mut self, client: ClientId, timers: &[ExpiredTimer], step: u32) -> Reaped {
        let Some(process) = self.connections.process(client) else {
            return Ok(Ok(Reap::Gone(Swept::default())));
        };
        let expiry = Expiry { process, timers, step };
        for hook in &mut self.hooks.before_reap {
            if let Err(reason) = catch_panic(|| hook(&expiry)) {
                log(|| tracing::error!(reason, "a `before_reap` hook panicked"));
            }
        }
        catch_panic(|| self.hooks.reaper.reap(&expiry))
    }

    fn clean_up(&mut self) -> Swept {
        let Some(process) = &self.ended else { return Swept::default() };
        catch_panic(|| self.hooks.reaper.clean_up(process)).unwrap_or_else(|reason| {
            log(|| tracing::error!(reason, "the reaper panicked in `clean_up`"));
            Swept::default()
        })
    }

    fn report(&mut self, event: &TimerEvent) {
        log(|| event.trace());
        for observer in &mut self.hooks.on_event {
            if let Err(reason) = catch_panic(|| observer(event)) {
                log(|| tracing::error!(reason, "an `on_event` observer panicked"));
            }
        }
    }

    /// Sets the timer to the next deadline. It is only set anew for an earlier deadline: one that
    /// was released costs a single needless wake-up.
    fn set_timer(&mut self) {
        let next = self.machine.next_deadline();
        let earlier = next.is_some_and(|next| self.set_to.is_none_or(|set_to| next < set_to));
        if !earlier && !self.fired {
            return;
        }
        match self.timer.set(next) {
            Ok(()) => (self.set_to, self.fired) = (next, false),
            Err(error) => {
                let reason = format!("cannot set the timer: {error}");
                self.report(&TimerEvent::TurnFailed { reason });
            }
        }
    }
}

/// Writes to the log, whose subscriber is user code.
fn log(write: impl FnOnce()) {
    // There is nowhere left to report a panic of the subscriber.
    let _ = catch_panic(write);
}
