//! Tests of the table, with the host's end and the worker's over the same memory.

use brigade_sys::clock::now;
use std::os::fd::AsFd;

use super::*;

pub(super) fn tables() -> (SlotTable, SlotTable) {
    let host = Segment::create("test", SlotTable::words(4)).expect("a segment");
    let other = host.as_fd().try_clone_to_owned().expect("a descriptor");
    let worker = Segment::open(other, SlotTable::words(4)).expect("the same segment");
    (SlotTable::new(host, 4), SlotTable::new(worker, 4))
}

#[test]
fn the_host_sees_the_section_that_the_worker_is_in() {
    let (host, worker) = tables();
    assert_eq!(host.section(), None);
    let section = Section { due: now(), limit: Duration::from_millis(7) };
    worker.set_section(Some(section));
    assert_eq!(host.section(), Some(section));
    worker.set_section(None);
    assert_eq!(host.section(), None);
}

#[test]
fn the_host_sees_when_a_task_began_and_ended() {
    let (host, worker) = tables();
    assert_eq!(host.state(3), SlotState::Free);
    host.arm(3, 7);
    assert_eq!(host.state(3), SlotState::Queued);
    let time = now();
    assert!(worker.begin(3, 7, time));
    assert_eq!(host.state(3), SlotState::Running { since: time });
    assert_eq!(host.revoke(3, 7), Revocation::Begun);
    host.arm(3, 8);
    assert_eq!(
        host.state(3),
        SlotState::Queued,
        "the outcome was received and the entry is in use again"
    );
}

#[test]
fn a_revoked_task_does_not_begin() {
    let (host, worker) = tables();
    host.arm(0, 7);
    assert_eq!(host.revoke(0, 7), Revocation::Revoked);
    assert!(!worker.begin(0, 7, now()));
    assert_eq!(host.state(0), SlotState::Revoked);
}

#[test]
fn an_overwritten_word_is_not_a_start() {
    let (host, worker) = tables();
    for garbage in [1, 0xa5a5_a5a5_a5a5_a5a5, u64::MAX] {
        host.arm(0, 7);
        worker.segment.words()[0].store(garbage, Ordering::Relaxed);
        assert_eq!(host.revoke(0, 7), Revocation::Neither);
        assert_eq!(host.state(0), SlotState::Free);
        assert!(worker.begin(0, 7, now()), "the worker does not know");
    }
    host.arm(0, 7);
    assert_eq!(host.revoke(0, 7), Revocation::Revoked, "the garbage is gone");
    assert_eq!(host.revoke(0, 7), Revocation::Neither, "it was revoked before");
}

#[test]
fn only_the_word_before_this_very_task_proves_that_it_has_not_begun() {
    let (host, worker) = tables();
    host.arm(0, 7);
    assert!(!host.may_have_begun(0, 7));
    assert!(host.may_have_begun(0, 8) && host.may_have_begun(1, 7));
    assert!(worker.begin(0, 7, now()));
    assert!(host.may_have_begun(0, 7));
    host.arm(0, 8);
    assert!(!host.may_have_begun(0, 8));
    worker.segment.words()[0].store(u64::MAX, Ordering::Relaxed);
    assert!(host.may_have_begun(0, 8));
}

#[test]
fn a_start_with_another_tag_is_a_breach() {
    let (host, worker) = tables();
    host.arm(0, 7);
    assert_eq!(host.revoke(0, 8), Revocation::Neither);
    assert!(worker.begin(0, 8, now()));
    assert_eq!(host.revoke(0, 7), Revocation::Neither);
    assert_eq!(host.state(0), SlotState::Free);
}

/// A task that was revoked may be sent to the same entry once more.
#[test]
fn the_same_task_can_be_sent_again() {
    let (host, worker) = tables();
    for _ in 0..3 {
        host.arm(0, 7);
        assert_eq!(host.state(0), SlotState::Queued);
        assert_eq!(host.revoke(0, 7), Revocation::Revoked);
        assert!(!worker.begin(0, 7, now()));
        for _ in 0..2 {
            host.arm(0, 7);
            assert_eq!(host.state(0), SlotState::Queued);
            assert!(!host.may_have_begun(0, 7));
            assert!(worker.begin(0, 7, now()));
            assert!(matches!(host.state(0), SlotState::Running { .. }));
        }
    }
}

#[test]
fn the_host_sees_how_many_items_of_a_chunk_have_begun() {
    let (host, worker) = tables();
    worker.begin_item(3, 9);
    host.reset_items(3);
    host.arm(3, 7);
    assert_eq!(host.begun_items(3), 0);
    assert!(worker.begin(3, 7, now()));
    worker.begin_item(3, 2);
    assert_eq!((host.begun_items(3), host.begun_items(2)), (2, 0));
    worker.begin_item(4, 1);
    assert_eq!(host.begun_items(4), 0, "there is no such entry");
}

#[test]
fn an_index_beyond_the_table_is_harmless() {
    let (host, worker) = tables();
    host.arm(4, 1);
    assert!(!worker.begin(4, 1, now()));
    assert_eq!(host.revoke(u16::MAX, 1), Revocation::Neither);
    assert_eq!(host.state(4), SlotState::Free);
}
