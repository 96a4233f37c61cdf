//! Values of which numbers stay in this process's memory until the host has copied them.

use std::mem::take;
use std::sync::Arc;

use brigade_sys::arena::{OFFERED, Offer};
use brigade_sys::executable::Invocation;
use brigade_sys::numbers::{Mark, Numbers, SharedNumbers};
use brigade_wire::codec::chain;
use brigade_wire::codec::parts::{MARK_OF_END, joined_length};
use brigade_wire::segments::{self, Apart, Segment};
use brigade_wire::{MessageError, Outcome};

use super::caller::{Calls, Store, Uncommon};

impl Store<'_> {
    /// Offers the parts of a value, or a large one as its only part. `early` is the offer of one
    /// whose numbers are the leftover, and the bytes that precede them. Without an offer, the parts
    /// are put into the value.
    pub(super) fn offer_parts(
        &self,
        invocation: &mut Invocation<'_>,
        early: Option<(Offer, Vec<u8>)>,
    ) -> Result<Option<Offer>, MessageError> {
        let Invocation { result, limit, parts, leftover, has_segments, .. } = invocation;
        let Some(parts) = parts.as_deref_mut() else { return Ok(None) };
        if !parts.is_empty() {
            let lengths = parts.iter().map(|(mark, part)| (*mark, part.as_bytes().len()));
            // A refused offer would release the buffers of the value, which come once more.
            let is_alone = segments::split(result).is_ok_and(|(_, all)| all.len() == parts.len());
            let length = joined_length(result.len(), lengths).max(OFFERED);
            let offer = if is_alone { self.offer(length) } else { None };
            if offer.is_none() {
                put_in(result, parts, *limit)?;
            }
            return Ok(offer);
        }
        let (offer, head, numbers) = match (early, leftover) {
            (Some((offer, prefix)), Some(leftover)) => (offer, prefix, take(*leftover)),
            _ if *has_segments => return Ok(None),
            _ => match self.offer(result.len()) {
                Some(offer) => (offer, Vec::new(), Numbers::of(take(*result))),
                None => return Ok(None),
            },
        };
        let part = SharedNumbers::of(Arc::new(numbers));
        **result = head;
        segments::append(
            result,
            &[Segment::Apart(Apart::of(MARK_OF_END, &part, true))],
            usize::MAX,
        )?;
        parts.push((MARK_OF_END, part));
        *has_segments = true;
        Ok(Some(offer))
    }
}

impl Calls {
    /// Returns the outcome with the last value and its parts in it, which the host could not copy.
    pub(super) fn refused(&mut self, store: &Store<'_>) -> Outcome<'_> {
        tracing::debug!(
            "the host cannot read this worker's memory, and gets a result through its own"
        );
        match put_in(&mut self.result, &mut self.parts, self.limit) {
            Ok(()) => store.outcome(Uncommon::Segmented(None), &self.result),
            Err(error) => Outcome::ResultCodec(chain(&error)),
        }
    }
}

/// Puts parts into their value.
fn put_in(
    result: &mut Vec<u8>,
    parts: &mut Vec<(Mark, SharedNumbers)>,
    limit: usize,
) -> Result<(), MessageError> {
    let parts = take(parts);
    let mut bytes = parts.iter().map(|(_, part)| part.as_bytes());
    let mut joined = Vec::new();
    let of = |segment: &Segment<'_>| segment.apart().and_then(|_| bytes.next());
    segments::put_in(result, of, &mut joined, limit)?;
    *result = joined;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use brigade_sys::arena::{self, OFFERED, ResultArena, ResultView};
    use brigade_sys::control::ControlSocket;
    use brigade_wire::codec;
    use brigade_wire::codec::packed::Packed;
    use brigade_wire::codec::parts::encode_in_parts;

    use super::*;
    use crate::arenas::Arenas;
    use crate::buffers;
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

    /// Returns the value that follows the refusal of one, which `encode` encodes.
    fn refused(room: usize, encode: impl FnOnce(&Store<'_>, &mut Invocation<'_>)) -> Vec<u8> {
        let (host, arenas) = arenas(room);
        let mut calls = Calls::new(usize::MAX);
        calls.has_sent_large = true;
        let store = calls.offering_store(Some(&arenas));
        let Calls { result, parts, leftover, .. } = &mut calls;
        let mut invocation = Invocation::new(&[], result, usize::MAX);
        invocation.parts = Some(parts);
        invocation.leftover = Some(leftover);
        encode(&store, &mut invocation);
        let early = store.offered.take();
        let offer = store.offer_parts(&mut invocation, early).unwrap().unwrap();
        assert!(invocation.has_segments);
        let loan = host.loan_buffer(offer.offset(), 0).unwrap();
        loan.refuse();
        drop(loan);
        assert!(!offer.wait());
        let Outcome::Segmented(segmented) = calls.refused(&store) else { panic!("a value") };
        let (encoded, segments) = segments::split(segmented.payload).unwrap();
        assert_eq!((segmented.offer, segments.len()), (None, 0));
        match segmented.location {
            Some(location) => {
                let [offset, length] =
                    [location.offset, location.length].map(|it| usize::try_from(it).unwrap());
                host.loan(offset, length).unwrap().copy_to_vec(0, length)
            }
            None => encoded.to_vec(),
        }
    }

    fn encoded<T: serde::Serialize + 'static>(value: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        codec::encode(value, &mut bytes, usize::MAX).unwrap();
        bytes
    }

    #[test]
    fn a_refused_value_is_sent_through_the_arena_or_the_link() {
        for room in [8 * OFFERED, OFFERED + (1 << 16)] {
            let numbers = vec![7_u32; (OFFERED + (1 << 17)) / 4];
            let packed = ("x".to_owned(), Packed::new(numbers.clone()));
            let words = vec!["seven".to_owned(); OFFERED / 4];

            let whole = refused(room, |store, invocation| {
                let (prefix, bytes) = codec::contiguous_parts(&numbers).unwrap();
                assert!(store.put_value(&[prefix.as_slice(), bytes]));
                **invocation.leftover.as_mut().unwrap() = Numbers::of(numbers.clone());
            });
            assert!(whole == encoded(&numbers));
            let parts = refused(room, |_, invocation| {
                let Invocation { result, parts: Some(parts), has_segments, .. } = invocation else {
                    panic!("parts")
                };
                encode_in_parts(&packed, result, usize::MAX, usize::MAX, Some(parts)).unwrap();
                assert_eq!(parts.len(), 1);
                buffers::append(Box::default(), parts, result, usize::MAX, "").unwrap();
                *has_segments = true;
            });
            assert!(parts == encoded(&packed));
            let other = refused(room, |_, invocation| *invocation.result = encoded(&words));
            assert!(other == encoded(&words));
        }
    }
}
