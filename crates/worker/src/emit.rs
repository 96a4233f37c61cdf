//! Functions that emit any number of items while they run.

use std::any::type_name;
use std::marker::PhantomData;

use brigade_sys::executable::{
    Adapter, EntryError, EntryPoint, Invocation, Outlet, Refusal, entry_point,
};
use brigade_wire::codec;
use brigade_wire::link::ARENA_THRESHOLD;
use brigade_wire::shared::exporting;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::EmitError;
use crate::{buffers, typed};

/// A buffer that has grown beyond this is not kept for the next item.
const KEPT_BUFFER: usize = 1 << 20;

/// Hands the items of a running function over, each as it is produced; see
/// [`emit`](Self::emit).
pub struct Emit<'a, R> {
    outlet: &'a mut (dyn Outlet + 'a),
    buffer: Vec<u8>,
    /// Maximum size of an encoded item.
    limit: usize,
    /// The first refusal, which holds for all later items.
    refusal: Option<Refusal>,
    _items: PhantomData<fn(R)>,
}

impl<'a, R: Serialize + 'static> Emit<'a, R> {
    fn new(outlet: &'a mut (dyn Outlet + 'a), limit: usize) -> Self {
        Self { outlet, buffer: Vec::new(), limit, refusal: None, _items: PhantomData }
    }

    /// Hands over an item. Blocks while the consumer has not taken enough of the earlier ones.
    ///
    /// # Errors
    /// [`EmitError::Closed`] if nobody wants the items any more, and [`EmitError::Expired`] if the
    /// task's soft deadline passes while this blocks. Then all later items are refused as well, so
    /// the function should return. [`EmitError::Codec`] concerns this item alone.
    pub fn emit(&mut self, item: R) -> Result<(), EmitError> {
        self.check_open()?;
        // First of all, so that an item that waits takes no memory beside its value.
        let granted = self.outlet.wait();
        self.note(granted)?;
        if let Some((prefix, bytes)) = codec::contiguous_parts(&item) {
            let length = bytes.len().saturating_add(prefix.as_slice().len());
            if (ARENA_THRESHOLD..=self.limit).contains(&length) {
                let sent = self.outlet.send(&[prefix.as_slice(), bytes], false);
                return self.note(sent);
            }
        }
        self.buffer.clear();
        let (encoded, exported) = exporting(|| codec::encode(&item, &mut self.buffer, self.limit));
        encoded.map_err(|error| EmitError::Codec { message: codec::chain(&error) })?;
        let has_segments = exported.is_some();
        if let Some(exported) = exported {
            buffers::append(exported, &[], &mut self.buffer, self.limit, type_name::<R>())
                .map_err(|message| EmitError::Codec { message })?;
        }
        let sent = self.outlet.send(&[&self.buffer], has_segments);
        if self.buffer.capacity() > KEPT_BUFFER {
            self.buffer = Vec::new();
        }
        self.note(sent)
    }

    fn note(&mut self, answer: Result<(), Refusal>) -> Result<(), EmitError> {
        self.refusal = answer.err();
        self.check_open()
    }

    fn check_open(&self) -> Result<(), EmitError> {
        match self.refusal {
            None => Ok(()),
            Some(Refusal::Closed) => Err(EmitError::Closed),
            Some(Refusal::Expired) => Err(EmitError::Expired),
        }
    }
}

brigade_sys::debug_fields! {
    impl<R> Emit<'_, R> { refusal }
}

/// The value of a function that emits items, as the host receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EmitEnd {
    /// No item was refused.
    Complete,
    /// An item was refused because nobody wanted it.
    Closed,
    /// An item was refused at the task's soft deadline.
    Expired,
}

/// Decodes an `A` and calls the function, which emits any number of `R`.
struct Emitting<A, R>(PhantomData<fn(A) -> R>);

impl<F, A, R> Adapter<F> for Emitting<A, R>
where
    F: Fn(A, &mut Emit<'_, R>),
    A: DeserializeOwned + 'static,
    R: Serialize + 'static,
{
    fn call(function: F, invocation: &mut Invocation<'_>) -> Result<(), EntryError> {
        let argument = typed::decode(invocation)?;
        let Some(outlet) = invocation.outlet.take() else {
            let reason = "a function that emits items was not called by a stream";
            return Err(EntryError::Result(reason.to_owned()));
        };
        let mut emit = Emit::new(outlet, invocation.limit);
        function(argument, &mut emit);
        let end = match emit.refusal {
            None => EmitEnd::Complete,
            Some(Refusal::Closed) => EmitEnd::Closed,
            Some(Refusal::Expired) => EmitEnd::Expired,
        };
        codec::encode(&end, invocation.result, invocation.limit)
            .map_err(|error| EntryError::Result(codec::chain(&error)))
    }
}

/// Returns the plain function through which a worker calls a function that emits items; see
/// [`function_of`](crate::function_of).
pub fn emitting_function_of<F, A, R>(function: F) -> EntryPoint
where
    F: Fn(A, &mut Emit<'_, R>) + Copy + Send + 'static,
    A: DeserializeOwned + 'static,
    R: Serialize + 'static,
{
    entry_point::<F, Emitting<A, R>>(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes `room` items, then refuses.
    struct Consumer {
        room: usize,
        refusal: Refusal,
        items: Vec<Vec<u8>>,
    }

    impl Outlet for Consumer {
        fn wait(&mut self) -> Result<(), Refusal> {
            if self.items.len() < self.room { Ok(()) } else { Err(self.refusal) }
        }

        fn send(&mut self, parts: &[&[u8]], _: bool) -> Result<(), Refusal> {
            self.items.push(parts.concat());
            Ok(())
        }
    }

    fn count(to: u8, emit: &mut Emit<'_, u8>) {
        for number in 0..to {
            let _ = emit.emit(number);
        }
    }

    fn run(entry: EntryPoint, consumer: &mut Consumer) -> EmitEnd {
        let mut result = Vec::new();
        let mut invocation = Invocation::new(&[4], &mut result, 9);
        invocation.outlet = Some(consumer);
        entry(&mut invocation).expect("a value");
        codec::decode(&result).expect("an end")
    }

    #[test]
    fn items_are_sent_in_order_and_the_first_refusal_holds() {
        let mut consumer = Consumer { room: 9, refusal: Refusal::Expired, items: Vec::new() };
        assert_eq!(run(emitting_function_of(count), &mut consumer), EmitEnd::Complete);
        assert_eq!(consumer.items, [[0], [1], [2], [3]]);
        let mut consumer = Consumer { room: 2, refusal: Refusal::Expired, items: Vec::new() };
        assert_eq!(run(emitting_function_of(count), &mut consumer), EmitEnd::Expired);
        assert_eq!(consumer.items, [[0], [1]]);
    }

    #[test]
    fn an_item_that_cannot_be_encoded_is_an_error_of_its_own() {
        let entry = emitting_function_of(|times: usize, emit: &mut Emit<'_, String>| {
            let refused = emit.emit("ab".repeat(5)).expect_err("above the limit of 9 bytes");
            assert!(matches!(refused, EmitError::Codec { .. }), "{refused}");
            emit.emit("ab".repeat(times)).expect("within the limit");
        });
        let mut consumer = Consumer { room: 9, refusal: Refusal::Closed, items: Vec::new() };
        assert_eq!(run(entry, &mut consumer), EmitEnd::Complete);
        assert_eq!(consumer.items, [b"\x08abababab"]);
    }
}
