//! Tests of the order in which callers are called.

use std::sync::atomic::AtomicU32 as Counter;

use super::*;

/// Returns a queue and the number of times that its watcher was woken.
fn queue(cores: usize) -> (Arc<WakeQueue>, Arc<Counter>) {
    let woken = Arc::new(Counter::new(0));
    let counted = Arc::clone(&woken);
    let wake_watcher = move || {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    (WakeQueue::new(cores, wake_watcher), woken)
}

/// Returns the places of sleeping callers whose outcomes arrive in this order.
fn sleepers<const COUNT: usize>(queue: &Arc<WakeQueue>) -> [Seat; COUNT] {
    std::array::from_fn(|_| {
        let seat = queue.seat();
        seat.ticket().wake();
        seat
    })
}

fn called(seats: &[Seat]) -> Vec<bool> {
    seats.iter().map(|seat| seat.0.stage.load(Ordering::Relaxed) == CALLED).collect()
}

#[test]
fn each_caller_calls_the_next() {
    let (queue, _) = queue(2);
    let [first, second, third] = sleepers(&queue);
    let rest = [second, third];
    assert_eq!(called(&rest), [false, false]);
    drop(first);
    assert_eq!(called(&rest), [true, false]);
    let [second, third] = rest;
    drop(second);
    assert_eq!(called(&[third]), [true]);
}

#[test]
fn half_as_many_as_cores_are_called_at_a_time() {
    for (cores, called_at_once) in [(0, 1), (1, 1), (3, 1), (4, 2), (64, 4)] {
        let (queue, _) = queue(cores);
        let seats: [Seat; 4] = sleepers(&queue);
        assert_eq!(called(&seats).into_iter().filter(|called| *called).count(), called_at_once);
    }
}

#[test]
fn a_caller_that_sleeps_no_longer_is_skipped() {
    let (queue, _) = queue(2);
    let [first, second, third] = sleepers(&queue);
    drop(second);
    assert_eq!(called(std::slice::from_ref(&third)), [false]);
    drop(first);
    assert_eq!(called(&[third]), [true]);
}

#[test]
fn the_watcher_calls_all_if_the_first_does_not_come() {
    let (queue, woken) = queue(2);
    let start = Monotonic::from_nanos(1);
    assert_eq!(queue.look(None, start), None);
    let seats: [Seat; 3] = sleepers(&queue);
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    let due = queue.look(None, start);
    assert_eq!(due, Some(start.saturating_add(LIMIT)));
    assert_eq!(queue.look(due, start), due, "it is woken for another reason");
    assert_eq!(called(&seats), [true, false, false]);
    let later = start.saturating_add(LIMIT);
    let next = queue.look(due, later);
    assert_eq!(called(&seats), [true; 3]);
    drop(seats);
    assert_eq!(queue.look(next, later.saturating_add(LIMIT)), None, "the queue is empty");
    assert_eq!(woken.load(Ordering::Relaxed), 1);
}

#[test]
fn the_watcher_leaves_a_queue_alone_that_moves() {
    let (queue, _) = queue(2);
    let start = Monotonic::from_nanos(1);
    let [first, second, third] = sleepers(&queue);
    let due = queue.look(None, start);
    drop(first);
    let later = start.saturating_add(LIMIT);
    let next = queue.look(due, later);
    assert_eq!(next, Some(later.saturating_add(LIMIT)));
    assert_eq!(called(&[second, third]), [true, false]);
}

#[test]
fn all_are_called_while_nobody_can_watch() {
    let (queue, woken) = queue(2);
    let before: [Seat; 2] = sleepers(&queue);
    queue.set_unlimited(true);
    let meanwhile: [Seat; 2] = sleepers(&queue);
    assert_eq!((called(&before), called(&meanwhile)), (vec![true; 2], vec![true; 2]));
    queue.set_unlimited(false);
    drop((before, meanwhile));
    let after: [Seat; 2] = sleepers(&queue);
    assert_eq!(called(&after), [true, false]);
    assert_eq!(woken.load(Ordering::Relaxed), 1, "it looks until the queue is empty");
}

#[test]
fn all_are_called_at_once_while_tasks_are_long() {
    let (queue, woken) = queue(2);
    queue.set_in_turn(false);
    let seats: [Seat; 3] = sleepers(&queue);
    assert_eq!(called(&seats), [true; 3]);
    queue.set_in_turn(true);
    let [first, second, third] = seats;
    let more: [Seat; 2] = sleepers(&queue);
    drop((first, second));
    assert_eq!(called(&more), [false; 2], "one of those before still has to run");
    queue.set_in_turn(false);
    drop(third);
    assert_eq!(called(&more), [true; 2]);
    assert_eq!(woken.load(Ordering::Relaxed), 1);
}

#[test]
fn turns_end_earlier_while_more_callers_wait() {
    let (queue, _) = queue(2);
    let calls_of_a_turn = || (0..10 * CALLS).take_while(|_| !queue.is_turn_over()).count();
    let few: [Seat; 2] = sleepers(&queue);
    assert_eq!(calls_of_a_turn(), 10 * CALLS as usize, "fewer wait than there are cores");
    let more: [Seat; 3] = sleepers(&queue);
    assert_eq!(calls_of_a_turn(), CALLS as usize / 4);
    let many: [Seat; CALLS as usize] = sleepers(&queue);
    assert_eq!(calls_of_a_turn(), MIN_CALLS as usize);
    drop((few, more, many));
}
