//! Tests buffers on both sides of a pool's memory, in one process.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use brigade_sys::arena::{
    ArgumentArena, ArgumentView, ForeignArena, Protection, ResultArena, ResultView, Terms, WhenFull,
};

use crate::shared::{Place, SharedBuf, SharedBufMut};

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
    let Place::Arguments { offset, length } = sent.slice(5..).place() else { panic!("elsewhere") };
    assert_eq!(length, 100_000, "the place of the whole");
    let drops = Arc::new(AtomicUsize::new(0));
    let guard = Box::new(Counted(Arc::clone(&drops)));
    let arrived = SharedBuf::in_argument(&view, offset, length, Some(guard)).expect("inside");
    assert_eq!(arrived, sent);
    assert_eq!(arrived.place(), sent.place());
    let part = arrived.slice(10..);
    drop(arrived);
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    drop(part);
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    assert!(SharedBuf::in_argument(&view, BYTES, 1, None).is_none());
}

#[test]
fn a_result_arrives_at_every_level_of_protection() {
    for protection in [Protection::Trusted, Protection::ReadOnly, Protection::Copied] {
        let (arena, view) = results(protection);
        let (copies, _) = arguments();
        let sent = SharedBufMut::in_results(&arena, 100_000, WhenFull::Fail).expect("room");
        let sent = filled(sent, 9);
        let Place::Results { offset, length, .. } = sent.place() else { panic!("elsewhere") };
        // Not sent, so it does not count.
        drop(sent.export());
        for copies in [None, Some(&copies)] {
            sent.export().sent();
            let loan = view.loan_buffer(offset, length).expect("a block");
            let arrived = SharedBuf::from_loan(loan, protection, copies);
            assert_eq!(arrived, sent);
            match (arrived.place(), copies) {
                (Place::Heap, None) | (Place::Arguments { .. }, Some(_)) => {
                    assert_eq!(protection, Protection::Copied);
                }
                (Place::Results { arena, .. }, _) => {
                    assert_ne!(protection, Protection::Copied);
                    assert_eq!(arena, view.reference());
                }
                place => panic!("{place:?}"),
            }
        }
        drop(sent);
        arena.reclaim();
        let reused = SharedBufMut::in_results(&arena, 100_000, WhenFull::Fail).expect("room");
        let again = Place::Results { arena: arena.reference(), offset, length };
        assert_eq!(reused.freeze().place(), again);
    }
}

#[test]
fn the_first_look_copies_a_result_and_returns_the_memory() {
    let (arena, view) = results(Protection::Copied);
    let sent = SharedBufMut::in_results(&arena, 100_000, WhenFull::Fail).expect("room");
    let sent = filled(sent, 9);
    let (bytes, place) = (sent.to_vec(), sent.place());
    let Place::Results { offset, length, .. } = place else { panic!("elsewhere") };
    sent.export().sent();
    let loan = view.loan_buffer(offset, length).expect("a block");
    let arrived = SharedBuf::from_loan(loan, Protection::Copied, None);
    drop(sent);
    let next = || {
        arena.reclaim();
        let next = SharedBufMut::in_results(&arena, 100_000, WhenFull::Fail).expect("room");
        next.freeze().place()
    };
    assert_ne!(next(), place, "it is not copied yet");
    assert_eq!(*arrived, *bytes);
    assert_eq!(next(), place);
}

#[test]
fn a_result_passes_on_to_other_workers_and_back() {
    let (arena, view) = results(Protection::Trusted);
    let sent = SharedBufMut::in_results(&arena, 100_000, WhenFull::Fail).expect("room");
    let sent = filled(sent, 3);
    sent.export().sent();
    let Place::Results { offset, length, .. } = sent.place() else { panic!("elsewhere") };
    let loan = view.loan_buffer(offset, length).expect("a block");
    let at_host = SharedBuf::from_loan(loan, Protection::Trusted, None);
    let Place::Results { arena: reference, .. } = at_host.place() else { panic!("elsewhere") };

    let reader = at_host.results().expect("a worker's").for_reader().expect("a descriptor");
    let other = ForeignArena::open(reader, reference).expect("an arena");
    let foreign = SharedBuf::in_foreign(&other, offset, length, None).expect("inside");
    assert_eq!(foreign, sent);
    assert_eq!(foreign.place(), at_host.place());
    // Another worker has not allocated it, so it does not count as named by it.
    foreign.export().sent();
    let back = SharedBuf::in_own_results(&arena, offset, length, None).expect("inside");
    assert_eq!(back, sent);
    drop((sent, foreign, back, at_host));
    arena.reclaim();
    let reused = SharedBufMut::in_results(&arena, length, WhenFull::Fail).expect("room").freeze();
    assert_eq!(reused.place(), Place::Results { arena: arena.reference(), offset, length });
}
