//! Values that stay in this process's memory until the host has copied them.

use brigade_sys::arena::Offer;
use brigade_sys::numbers::Numbers;
use brigade_wire::{Outcome, codec};
use std::any::type_name;

use super::caller::{Calls, Store};

/// A value that the host copies from the memory of the [calls](Calls), which stays as it is until
/// then.
pub(super) struct Offered {
    offer: Offer,
    memory: Kept,
}

/// The memory of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kept {
    /// [`Calls::result`], with the whole encoded value.
    Result,
    /// [`Calls::leftover`]. The encoded value begins with how many numbers these are if they are
    /// counted.
    Leftover { is_counted: bool },
    /// [`Calls::parts`]. The value in [`Calls::result`] is encoded without them.
    Parts,
}

impl Offered {
    pub(super) fn new(offer: Offer, memory: Kept) -> Self {
        Self { offer, memory }
    }

    pub(super) fn outcome(&self, result: &[u8], leftover: Option<&Numbers>) -> Outcome<'static> {
        let (bytes, counted) = match (self.memory, leftover) {
            (Kept::Leftover { is_counted }, Some(numbers)) => {
                (numbers.as_bytes(), is_counted.then(|| numbers.unit()))
            }
            _ => (result, None),
        };
        Outcome::Offered(brigade_wire::Offered {
            block: self.offer.offset() as u64,
            address: bytes.as_ptr().expose_provenance() as u64,
            length: bytes.len() as u64,
            counted,
            in_parts: matches!(self.memory, Kept::Parts),
        })
    }

    /// Blocks until the host does not need the memory any more. Returns the outcome to send in
    /// place of the first one if the host could not copy the value.
    pub(super) fn wait<'a>(self, store: &Store<'_>, calls: &'a mut Calls) -> Option<Outcome<'a>> {
        if self.offer.wait() {
            return None;
        }
        tracing::debug!(
            "the host cannot read this worker's memory, and gets a result through its own"
        );
        Some(self.memory.stored(store, calls))
    }
}

impl Kept {
    /// Returns the outcome with a copy of the value.
    fn stored<'a>(self, store: &Store<'_>, calls: &'a mut Calls) -> Outcome<'a> {
        if let Self::Parts = self {
            match codec::parts::join(&calls.result, &calls.parts, type_name::<Numbers>()) {
                Ok(joined) => calls.result = joined,
                Err(error) => return Outcome::ResultCodec(codec::chain(&error)),
            }
        }
        let Self::Leftover { is_counted } = self else {
            let location = store.put(&[&calls.result]);
            return location.map_or(Outcome::Value(&calls.result), Outcome::InArena);
        };
        let (prefix, bytes) = codec::parts_of_numbers(&calls.leftover);
        let prefix = if is_counted { prefix.as_slice() } else { &[] };
        if let Some(location) = store.put(&[prefix, bytes]) {
            return Outcome::InArena(location);
        }
        calls.result.clear();
        calls.result.extend_from_slice(prefix);
        calls.result.extend_from_slice(bytes);
        calls.leftover = Numbers::default();
        Outcome::Value(&calls.result)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::sync::Arc;

    use brigade_sys::arena::{self, OFFERED, ResultArena, ResultView};
    use brigade_sys::control::ControlSocket;

    use brigade_wire::codec::packed::Packed;
    use brigade_wire::codec::parts::{Addresses, encode_in_parts};

    use super::*;
    use crate::arenas::Arenas;
    use crate::control::Control;

    /// Returns the host's end of an arena of `bytes` bytes, and the arenas of this process as its
    /// worker, which may offer.
    fn arenas(bytes: usize) -> (Arc<ResultView>, Arenas) {
        let host = ResultView::create("test", bytes, usize::MAX, arena::Terms::default()).unwrap();
        let descriptor = host.as_fd().try_clone_to_owned().unwrap();
        let results = ResultArena::open(descriptor, host.len(), arena::Terms::default()).unwrap();
        host.set_worker(std::process::id());
        let (offset, length) = results.put(&[&vec![1; OFFERED]]).unwrap();
        drop(host.loan(offset, length).unwrap());
        let control = Arc::new(Control::new(ControlSocket::pair().unwrap().0));
        (host, Arenas::of_results(results, &control))
    }

    /// Returns the outcome that follows a refusal of this value.
    fn refused(
        host: &Arc<ResultView>,
        arenas: &Arenas,
        calls: &mut Calls,
        memory: Kept,
    ) -> Vec<u8> {
        let store = calls.offering_store(Some(arenas));
        let offered = Offered::new(arenas.results.offer(OFFERED).unwrap(), memory);
        let loan = host.loan_buffer(offered.offer.offset(), 0).unwrap();
        loan.refuse();
        drop(loan);
        match offered.wait(&store, calls).unwrap() {
            Outcome::InArena(location) => {
                let [offset, length] =
                    [location.offset, location.length].map(|it| usize::try_from(it).unwrap());
                host.loan(offset, length).unwrap().copy_to_vec(0, length)
            }
            Outcome::Value(value) => value.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_refused_value_is_sent_through_the_arena_or_the_link() {
        for room in [8 * OFFERED, OFFERED + (1 << 16)] {
            let counted = Kept::Leftover { is_counted: true };
            let bytes = Kept::Leftover { is_counted: false };
            for memory in [Kept::Result, counted, bytes, Kept::Parts] {
                let (host, arenas) = arenas(room);
                let mut calls = Calls::new(usize::MAX);
                let value = vec![7_u8; OFFERED + (1 << 17)];
                let numbers = vec![7_u32; value.len() / 4];
                let mut expected = Vec::new();
                match memory {
                    Kept::Leftover { is_counted: true } => {
                        codec::encode(&numbers, &mut expected, usize::MAX).unwrap();
                        calls.leftover = Numbers::of(numbers);
                    }
                    Kept::Leftover { is_counted: false } => {
                        expected.clone_from(&value);
                        calls.leftover = Numbers::of(value);
                    }
                    Kept::Parts => {
                        let value = ("x".to_owned(), Packed::new(numbers));
                        codec::encode(&value, &mut expected, usize::MAX).unwrap();
                        let Calls { result, parts, .. } = &mut calls;
                        encode_in_parts(
                            &value,
                            result,
                            usize::MAX,
                            (usize::MAX, Addresses::Named),
                            Some(parts),
                        )
                        .unwrap();
                        assert_eq!(calls.parts.len(), 1);
                    }
                    Kept::Result => {
                        expected.clone_from(&value);
                        calls.result = value;
                    }
                }
                assert!(refused(&host, &arenas, &mut calls, memory) == expected, "{memory:?}");
            }
        }
    }
}
