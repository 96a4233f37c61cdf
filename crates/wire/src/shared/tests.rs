//! Tests buffers on both sides of a pool's memory, in one process.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use brigade_sys::arena::{
    ArgumentArena, ArgumentView, ForeignArena, Protection, ResultArena, ResultView, Terms, WhenFull,
};

use crate::segments::Segment;
use crate::shared::{SharedBuf, SharedBufMut};

const BYTES: usize = 8 << 20;

fn copy_of(descriptor: &impl AsFd) -> OwnedFd {
    descriptor.as_fd().try_clone_to_owned().expect("a descriptor")
}

fn arguments() -> (Arc<ArgumentArena>, ArgumentView) {
    let arena = ArgumentArena::create("test", BYTES, BYTES).expect("memory");
    let view = ArgumentView::open(copy_of(&arena), arena.len()).expect("an arena");
    (arena, view)
}

fn results(protection: Protection) -> (Arc<ResultArena>, Arc<ResultView>) {
    let terms = Terms { budget: BYTES, protection };
    let view = ResultView::create("test", BYTES, BYTES, terms).expect("memory");
    let arena = ResultArena::open(copy_of(&view), view.len(), view.terms()).expect("an arena");
    (arena, view)
}

fn filled(mut buffer: SharedBufMut, value: u8) -> SharedBuf {
    buffer.fill(value);
    buffer.freeze()
}

/// Returns the name and the location of a buffer in its worker's own arena.
fn place_of(sent: &SharedBuf) -> (Segment<'static>, (usize, usize)) {
    let name = sent.name().expect("a name");
    let Segment::Result(location) = name else { panic!("elsewhere") };
    (name, location.in_memory().expect("in an arena"))
}

/// A guard that counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn an_argument_lies_where_the_host_wrote_it() {
    let (arena, view) = arguments();
    let sent = SharedBufMut::in_arguments(&arena, 100_000, WhenFull::Fail).expect("room");
    let sent = filled(sent, 7);
    let name = sent.slice(5..).name().expect("a name");
    let Segment::Argument(location) = name else { panic!("elsewhere") };
    let (offset, length) = location.in_memory().expect("in an arena");
    assert_eq!(length, 100_000, "the name of the whole");
    let drops = Arc::new(AtomicUsize::new(0));
    let guard = Box::new(Counted(Arc::clone(&drops)));
    let block = view.lend(offset, length).expect("inside");
    let arrived = SharedBuf::lent(block, name, Some(guard));
    assert_eq!(arrived, sent);
    assert_eq!(arrived.name_for_host(), sent.name());
    let part = arrived.slice(10..);
    drop(arrived);
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    drop(part);
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    assert!(view.lend(BYTES, 1).is_none());
}

#[test]
fn a_result_arrives_at_every_level_of_protection() {
    for protection in [Protection::Trusted, Protection::ReadOnly, Protection::Copied] {
        let (arena, view) = results(protection);
        let (copies, _) = arguments();
        let sent = SharedBufMut::in_results(&arena, 100_000, WhenFull::Fail).expect("room");
        let sent = filled(sent, 9);
        let (name, (offset, length)) = place_of(&sent);
        // Not sent, so it does not count.
        drop(sent.export());
        for copies in [None, Some(&copies)] {
            sent.export().sent();
            let loan = view.loan_buffer(offset, length).expect("a block");
            let arrived = SharedBuf::from_loan(loan, protection, copies);
            assert_eq!(arrived, sent);
            match (arrived.name(), copies) {
                (None, None) | (Some(Segment::Argument(_)), Some(_)) => {
                    assert_eq!(protection, Protection::Copied);
                }
                (Some(Segment::Foreign(arena, _)), _) => {
                    assert_ne!(protection, Protection::Copied);
                    assert_eq!(arena, view.reference());
                }
                place => panic!("{place:?}"),
            }
        }
        drop(sent);
        arena.reclaim();
        let reused = SharedBufMut::in_results(&arena, 100_000, WhenFull::Fail).expect("room");
        assert_eq!(reused.freeze().name(), Some(name));
    }
}

#[test]
fn the_first_look_copies_a_result_and_returns_the_memory() {
    let (arena, view) = results(Protection::Copied);
    let sent = SharedBufMut::in_results(&arena, 100_000, WhenFull::Fail).expect("room");
    let sent = filled(sent, 9);
    let bytes = sent.to_vec();
    let (name, (offset, length)) = place_of(&sent);
    sent.export().sent();
    let loan = view.loan_buffer(offset, length).expect("a block");
    let arrived = SharedBuf::from_loan(loan, Protection::Copied, None);
    drop(sent);
    let next = || {
        arena.reclaim();
        let next = SharedBufMut::in_results(&arena, 100_000, WhenFull::Fail).expect("room");
        next.freeze().name()
    };
    assert_ne!(next(), Some(name), "it is not copied yet");
    assert_eq!(*arrived, *bytes);
    assert_eq!(next(), Some(name));
}

#[test]
fn a_result_passes_on_to_other_workers_and_back() {
    let (arena, view) = results(Protection::Trusted);
    let sent = SharedBufMut::in_results(&arena, 100_000, WhenFull::Fail).expect("room");
    let sent = filled(sent, 3);
    sent.export().sent();
    let (name, (offset, length)) = place_of(&sent);
    let loan = view.loan_buffer(offset, length).expect("a block");
    let at_host = SharedBuf::from_loan(loan, Protection::Trusted, None);
    let at_host_name = at_host.name().expect("a name");
    let Segment::Foreign(reference, _) = at_host_name else { panic!("elsewhere") };

    let reader = at_host.results().expect("a worker's").for_reader().expect("a descriptor");
    let other = ForeignArena::open(reader, reference).expect("an arena");
    let block = other.lend(offset, length).expect("inside");
    let foreign = SharedBuf::lent(block, at_host_name, None);
    assert_eq!(foreign, sent);
    assert_eq!(foreign.name_for_host(), at_host.name());
    // Another worker has not allocated it, so it does not count as named by it.
    foreign.export().sent();
    let block = arena.lend(offset, length).expect("inside");
    let back = SharedBuf::lent(block, at_host_name, None);
    assert_eq!(back, sent);
    drop((sent, foreign, back, at_host));
    arena.reclaim();
    let reused = SharedBufMut::in_results(&arena, length, WhenFull::Fail).expect("room").freeze();
    assert_eq!(reused.name(), Some(name));
}
