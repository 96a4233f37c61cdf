//! Calls functions, and turns anything that they do into an outcome.

use std::cell::{Cell, RefCell};

use brigade_sys::arena::Offer;
use brigade_sys::executable::{EntryError, EntryPoint, Invocation, Outlet, StoreLarge};
use brigade_sys::fork::Origin;
use brigade_sys::numbers::{Mark, Numbers, SharedNumbers};
use brigade_wire::codec::chain;
use brigade_wire::link::ARENA_THRESHOLD;
use brigade_wire::slots::SlotTable;
use brigade_wire::{Attempt, Location, Outcome, PanicReport, Run, TaskId};

use crate::arenas::Arenas;
use crate::bounded::bounded;
use crate::buffers::{self, Lent};
use crate::{context, panic_capture, task_span};

/// Error texts of a type's own `serde` code are truncated to this, so that every link can carry
/// them.
const REASON_LIMIT: usize = 16 * 1024;

/// Memory that the calls of a worker use one after the other.
pub(super) struct Calls {
    pub(super) result: Vec<u8>,
    /// Memory of the last value, which is freed once its outcome is sent.
    pub(super) leftover: Numbers,
    /// The vectors in the last value, if it is encoded without them.
    pub(super) parts: Vec<(Mark, SharedNumbers)>,
    /// The offer of these vectors.
    pub(super) offered: Option<Offer>,
    pub(super) may_offer: bool,
    /// The host has got something large before, so it has said whether this process may offer.
    pub(super) has_sent_large: bool,
    /// Maximum size of a result.
    pub(super) limit: usize,
    /// The worker's process, as opposed to a fork of it.
    origin: Origin,
}

impl Calls {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            result: Vec::new(),
            leftover: Numbers::default(),
            parts: Vec::new(),
            offered: None,
            may_offer: true,
            has_sent_large: false,
            limit,
            origin: Origin::here(),
        }
    }

    /// Returns a store that puts large values into the arena, if there is one.
    pub(super) fn store<'a>(&self, arenas: Option<&'a Arenas>) -> Store<'a> {
        Store {
            arenas,
            origin: self.origin,
            offers: false,
            location: Cell::new(None),
            offered: RefCell::new(None),
        }
    }

    /// Returns a store that also [offers](Offer) values, if this process may and the host reads its
    /// memory.
    pub(super) fn offering_store<'a>(&self, arenas: Option<&'a Arenas>) -> Store<'a> {
        let may_offer = self.may_offer && self.has_sent_large;
        let offers = may_offer && arenas.is_some_and(|arenas| arenas.results.is_reached());
        Store { offers, ..self.store(arenas) }
    }
}

/// Stores large values of calls.
pub(super) struct Store<'a> {
    pub(super) arenas: Option<&'a Arenas>,
    pub(super) origin: Origin,
    /// Values may stay in the memory of the calls until the host has copied them.
    offers: bool,
    /// The place of the value of the current call, if it is stored.
    location: Cell<Option<Location>>,
    /// The offer of the numbers that are the value of the current call, and the bytes before them.
    pub(super) offered: RefCell<Option<(Offer, Vec<u8>)>>,
}

impl Store<'_> {
    /// Stores bytes. Returns `None` if there is no room.
    pub(super) fn put(&self, parts: &[&[u8]]) -> Option<Location> {
        self.origin.end_copy();
        let (offset, length) = self.arenas?.results.put(parts)?;
        Some(Location::of(offset, length))
    }

    /// Stores the value of the current call, which is kept if it is offered. Returns `false` if
    /// there is no room.
    pub(super) fn put_value(&self, parts: &[&[u8]]) -> bool {
        if let [prefix, bytes] = parts
            && let Some(offer) = self.offer(bytes.len())
        {
            *self.offered.borrow_mut() = Some((offer, prefix.to_vec()));
            return true;
        }
        self.location.set(self.put(parts));
        self.location.get().is_some()
    }

    /// Returns an offer of numbers, unless the host has to get them in another way.
    pub(super) fn offer(&self, length: usize) -> Option<Offer> {
        self.origin.end_copy();
        self.arenas.filter(|_| self.offers)?.results.offer(length)
    }

    /// Returns an outcome that borrows from the encoded value.
    pub(super) fn outcome<'a>(&self, uncommon: Uncommon, value: &'a [u8]) -> Outcome<'a> {
        match uncommon {
            Uncommon::Outcome(outcome) => outcome,
            Uncommon::Segmented(offer) => {
                buffers::outcome(value, self.arenas.map(|arenas| &*arenas.results), offer)
            }
        }
    }
}

/// The outcome of a call, or `None` if that is the value in [`Calls::result`], as it almost always
/// is. So nothing is moved that was just written: a processor stalls when it moves what was written
/// in smaller parts.
pub(super) type Answer = Option<Box<Uncommon>>;

/// An outcome other than a value in a message.
pub(super) enum Uncommon {
    Outcome(Outcome<'static>),
    /// The value ends with a list of segments, whose numbers may be offered by this block. See
    /// [`Store::outcome`].
    Segmented(Option<u64>),
}

impl Uncommon {
    pub(super) fn boxed(outcome: Outcome<'static>) -> Box<Self> {
        Box::new(Self::Outcome(outcome))
    }
}

/// Calls functions for one task, or for the items of a chunk.
///
/// The calls of a chunk share what this prepares, which is a third of what calling a short function
/// takes.
pub(super) struct FunctionCaller<'a> {
    run: &'a Run<'a>,
    /// `true` if the task has deadlines or a trace context.
    has_details: bool,
    store: &'a Store<'a>,
    slots: &'a SlotTable,
    invocation: Invocation<'a>,
    offered: &'a mut Option<Offer>,
    has_sent_large: &'a mut bool,
}

impl<'a> FunctionCaller<'a> {
    #[inline]
    pub(super) fn new(
        run: &'a Run<'a>,
        calls: &'a mut Calls,
        store: &'a Store<'a>,
        slots: &'a SlotTable,
        put: &'a mut StoreLarge<'a>,
        outlet: Option<&'a mut (dyn Outlet + 'a)>,
    ) -> Self {
        let Calls { result, leftover, parts, offered, has_sent_large, limit, .. } = calls;
        let mut invocation = Invocation::new(&[], result, *limit);
        invocation.parts = store.offers.then_some(parts);
        // Items have no entry of their own.
        invocation.present = run.chunk.is_none().then(|| slots.present());
        invocation.store_large = Some(put);
        invocation.leftover = Some(leftover);
        invocation.outlet = outlet;
        let has_details =
            run.limits.are_some() || run.trace_context.is_some() || run.granted.is_some();
        Self { run, has_details, store, slots, invocation, offered, has_sent_large }
    }

    /// Sets the numbers that are apart from the argument of the next call.
    pub(super) fn set_arrived(&mut self, arrived: Vec<(Mark, Numbers)>) {
        self.invocation.arrived = arrived;
    }

    /// Returns the encoded value of the last call, if it has returned one.
    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        self.invocation.result
    }

    /// Calls a function. Anything that it does, short of ending the process, becomes its outcome.
    #[expect(
        clippy::inline_always,
        reason = "without it, a map of items of a microsecond is a hundredth slower"
    )]
    #[inline(always)]
    pub(super) fn call(
        &mut self,
        entry: EntryPoint,
        id: TaskId,
        argument: &'a [u8],
        lent: &mut Lent,
    ) -> Answer {
        self.invocation.result.clear();
        self.invocation.has_segments = false;
        if self.has_details {
            context::set_details(self.run);
        }
        let store = self.store;
        let performed = if self.run.has_segments {
            self.perform_segmented(entry, id, argument, lent)
        } else {
            self.invocation.argument = argument;
            perform(entry, id, (self.run.attempt, store, self.slots), &mut self.invocation)
        };
        store.origin.end_copy();
        context::leave();
        if self.has_details {
            context::clear_details();
        }
        let Invocation { result, has_segments, .. } = &self.invocation;
        let is_in_message = matches!(performed, Ok(Ok(())))
            && result.len() < ARENA_THRESHOLD
            && !has_segments
            && store.location.get().is_none()
            && store.offered.borrow().is_none();
        if is_in_message {
            None
        } else {
            *self.has_sent_large = true;
            uncommon(performed, store, &mut self.invocation, self.offered)
        }
    }

    /// Calls a function whose argument has segments.
    #[cold]
    fn perform_segmented(
        &mut self,
        entry: EntryPoint,
        id: TaskId,
        argument: &[u8],
        lent: &mut Lent,
    ) -> Performed {
        let (argument, buffers) = match lent.open(argument, self.store.arenas) {
            Ok(opened) => opened,
            Err(reason) => return Ok(Err(Box::new(EntryError::Argument(reason)))),
        };
        let with_buffers = buffers::importing(&buffers);
        let mut invocation = self.invocation.reborrow();
        invocation.argument = argument;
        invocation.with_buffers = Some(&with_buffers);
        let performed =
            perform(entry, id, (self.run.attempt, self.store, self.slots), &mut invocation);
        let has_segments = invocation.has_segments;
        self.invocation.has_segments = has_segments;
        performed
    }
}

/// The answer of a function, or its panic.
type Performed = Result<Result<(), Box<EntryError>>, Box<PanicReport>>;

#[expect(clippy::inline_always, reason = "see `FunctionCaller::call`")]
#[inline(always)]
fn perform(
    entry: EntryPoint,
    id: TaskId,
    (attempt, store, slots): (Attempt, &Store<'_>, &SlotTable),
    invocation: &mut Invocation<'_>,
) -> Performed {
    context::enter(id, attempt);
    let task = || {
        if task_span::are_wanted() {
            // Calls the subscriber, which may panic.
            let _span = task_span::enter(id, attempt);
            entry(invocation)
        } else {
            entry(invocation)
        }
        // A processor stalls when it moves what was just written in smaller parts.
        .map_err(Box::new)
    };
    panic_capture::run(task, || {
        store.origin.end_copy();
        slots.leave();
    })
}

#[cold]
fn uncommon(
    answer: Performed,
    store: &Store<'_>,
    invocation: &mut Invocation<'_>,
    slot: &mut Option<Offer>,
) -> Answer {
    let (location, early) = (store.location.take(), store.offered.take());
    let answer = answer.map(|performed| {
        let offered = performed.map(|()| store.offer_parts(invocation, early));
        offered?.map_err(|error| Box::new(EntryError::Result(chain(&error))))
    });
    Some(match answer {
        Ok(Ok(offer)) if invocation.has_segments => {
            *slot = offer;
            let block = slot.as_ref().map(|offer| offer.offset() as u64);
            Box::new(Uncommon::Segmented(block))
        }
        Ok(Ok(_)) => {
            let location = location.or_else(|| store.put(&[invocation.result]));
            Uncommon::boxed(Outcome::InArena(location?))
        }
        Ok(Err(error)) => Uncommon::boxed(match *error {
            EntryError::Argument(reason) => Outcome::ArgumentCodec(bounded(&reason, REASON_LIMIT)),
            EntryError::Result(reason) => Outcome::ResultCodec(bounded(&reason, REASON_LIMIT)),
        }),
        Err(report) => {
            buffers::undo_exports();
            Uncommon::boxed(Outcome::Panicked(report))
        }
    })
}
