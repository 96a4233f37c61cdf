//! Tests of the requests for tasks.

use super::*;
use crate::names::Priority;
use crate::requirements::Class;

fn at(millis: u64) -> Monotonic {
    Monotonic::ZERO + Duration::from_millis(millis)
}

fn lane(priority: Priority) -> Lane {
    Lane { priority, class: Class::default() }
}

/// Returns the new requests: the priority, the number of tasks, and whether they wait.
fn asked(pulls: &mut Pulls, free: u32) -> Vec<(PullId, Priority, u32, bool)> {
    asked_at(at(1_000), pulls, free)
}

fn asked_at(now: Monotonic, pulls: &mut Pulls, free: u32) -> Vec<(PullId, Priority, u32, bool)> {
    let mut actions = Vec::new();
    pulls.pull(now, |_| free, &mut actions);
    let asked = actions.into_iter().map(|action| match action {
        Action::Pull { pull, lane, batch, wait } => (pull, lane.priority, batch, wait.is_some()),
        other => panic!("{other:?}"),
    });
    asked.collect()
}

/// Returns lanes that have answered, and so may be asked for many tasks.
fn answering(lanes: &[Priority]) -> Pulls {
    let mut pulls = Pulls::default();
    pulls.add_lanes(lanes.iter().map(|&priority| lane(priority)).collect());
    for state in &mut pulls.lanes {
        state.answered();
    }
    pulls
}

#[test]
fn the_first_request_of_a_lane_is_soon_repeated() {
    let (mut pulls, now) = (Pulls::default(), at(1_000));
    pulls.add_lanes(vec![lane(Priority::Normal)]);
    let mut pauses = Vec::new();
    for _ in 0..6 {
        let first = asked(&mut pulls, 8);
        assert!(matches!(first[..], [(_, Priority::Normal, 1, false)]), "{first:?}");
        let expiry = pulls.next_expiry().unwrap();
        pauses.push(expiry.saturating_since(now).as_millis());
        pulls.expire(expiry);
    }
    assert_eq!(pauses, [500, 1000, 2000, 4000, 5000, 5000]);
    // Once the lane has answered, requests wait, and more than one task may come.
    let last = asked(&mut pulls, 8);
    pulls.ended(now, last[0].0, false);
    let waiting = asked(&mut pulls, 8);
    assert!(matches!(waiting[..], [(_, Priority::Normal, 8, true)]), "{waiting:?}");
}

#[test]
fn a_new_leader_is_asked_at_once() {
    let mut pulls = answering(&[Priority::Normal, Priority::Low]);
    for _ in 0..2 {
        let empty = asked(&mut pulls, 4);
        pulls.ended(at(1_000), empty[0].0, false);
    }
    assert_eq!(asked(&mut pulls, 4).len(), 2, "both wait");
    pulls.leader_changed(&lane(Priority::Low));
    let again = asked(&mut pulls, 4);
    assert!(matches!(again[..], [(_, Priority::Low, 1, false)]), "{again:?}");
    pulls.ended(at(1_000), again[0].0, false);
    let waiting = asked(&mut pulls, 4);
    assert!(matches!(waiting[..], [(_, Priority::Low, 1, true)]), "{waiting:?}");
}

#[test]
fn tasks_are_signs_of_life() {
    let mut pulls = answering(&[Priority::Normal]);
    assert_eq!(asked(&mut pulls, 3).len(), 1);
    pulls.delivered(at(10_000), &lane(Priority::Normal));
    pulls.expire(at(20_000));
    assert_eq!(pulls.left(), 2);
}

#[test]
fn lanes_are_asked_in_the_order_of_their_urgency() {
    let mut pulls = answering(&[Priority::Low, Priority::High]);
    let now = at(1_000);
    let first = asked(&mut pulls, 4);
    assert!(matches!(first[..], [(_, Priority::High, 4, false)]), "{first:?}");
    assert!(asked(&mut pulls, 4).is_empty(), "one at a time");
    pulls.delivered(now, &lane(Priority::High));
    pulls.ended(now, first[0].0, false);
    let second = asked(&mut pulls, 3);
    assert!(matches!(second[..], [(_, Priority::Low, 3, false)]), "{second:?}");
    pulls.ended(now, second[0].0, false);
    let waiting = asked(&mut pulls, 3);
    let all = [(Priority::High, 1, true), (Priority::Low, 1, true)];
    let waiting: Vec<_> = waiting.into_iter().map(|pull| (pull.1, pull.2, pull.3)).collect();
    assert_eq!(waiting, all);
    // A task of the lower lane wakes the node, and the higher one is still known to be empty.
    pulls.delivered(now, &lane(Priority::Low));
    let next = asked(&mut pulls, 2);
    assert!(matches!(next[..], [(_, Priority::Low, 2, false)]), "{next:?}");
}

#[test]
fn silent_requests_are_sent_again() {
    let mut pulls = answering(&[Priority::Normal]);
    let first = asked(&mut pulls, 2);
    assert!(matches!(first[..], [(_, Priority::Normal, 2, true)]), "{first:?}");
    pulls.heartbeat(at(4_000), first[0].0);
    pulls.expire(at(15_000));
    assert!(asked(&mut pulls, 2).is_empty());
    pulls.expire(at(4_000) + SILENCE);
    assert_eq!(asked(&mut pulls, 2).len(), 1);
    pulls.abandon_all();
    assert_eq!(asked(&mut pulls, 2).len(), 1);
}

#[test]
fn a_failed_request_is_followed_by_a_pause() {
    let mut pulls = Pulls::default();
    pulls.add_lanes(vec![lane(Priority::Normal)]);
    let first = asked(&mut pulls, 1);
    pulls.ended(at(1_000), first[0].0, true);
    assert!(asked(&mut pulls, 1).is_empty());
    assert_eq!(pulls.next_expiry(), Some(at(1_250)));
    let mut actions = Vec::new();
    pulls.pull(at(1_250), |_| 1, &mut actions);
    assert_eq!(actions.len(), 1);
}

/// Returns the new requests, with room for `urgent` tasks of high priority and 5 of others.
fn asked_with(pulls: &mut Pulls, urgent: u32) -> Vec<(PullId, Priority, u32)> {
    let mut actions = Vec::new();
    let room = |lane: &Lane| if lane.priority == Priority::High { urgent } else { 5 };
    pulls.pull(at(1_000), room, &mut actions);
    let asked = actions.into_iter().filter_map(|action| match action {
        Action::Pull { pull, lane, batch, .. } => Some((pull, lane.priority, batch)),
        _ => None,
    });
    asked.collect()
}

#[test]
fn a_lane_without_room_is_asked_when_there_is_some() {
    let mut pulls = answering(&[Priority::High, Priority::Normal]);
    let asked = asked_with(&mut pulls, 0);
    assert!(matches!(asked[..], [(_, Priority::Normal, 5)]), "{asked:?}");
    pulls.ended(at(1_000), asked[0].0, false);
    let asked = asked_with(&mut pulls, 0);
    assert!(matches!(asked[..], [(_, Priority::Normal, 1)]), "{asked:?}");
    let asked = asked_with(&mut pulls, 2);
    assert!(matches!(asked[..], [(_, Priority::High, 2)]), "{asked:?}");
}

#[test]
fn a_lane_that_has_room_again_comes_before_less_urgent_ones() {
    let mut pulls = answering(&[Priority::High, Priority::Normal]);
    let asked = asked_with(&mut pulls, 0);
    assert!(matches!(asked[..], [(_, Priority::Normal, 5)]), "{asked:?}");
    assert_eq!(asked_with(&mut pulls, 2), [], "one at a time");
    for _ in 0..5 {
        pulls.delivered(at(1_000), &lane(Priority::Normal));
    }
    // The normal lane has more, but the urgent one was only passed over.
    let asked = asked_with(&mut pulls, 2);
    assert!(matches!(asked[..], [(_, Priority::High, 2)]), "{asked:?}");
    pulls.ended(at(1_000), asked[0].0, false);
    let asked = asked_with(&mut pulls, 2);
    assert!(matches!(asked[..], [(_, Priority::Normal, 5)]), "{asked:?}");
    // It was found empty, so resources that return change nothing.
    for _ in 0..5 {
        pulls.delivered(at(1_000), &lane(Priority::Normal));
    }
    let asked = asked_with(&mut pulls, 2);
    assert!(matches!(asked[..], [(_, Priority::Normal, 5)]), "{asked:?}");
}

#[test]
fn urgent_lanes_are_asked_again_while_others_are_full() {
    let mut pulls = answering(&[Priority::High, Priority::Normal]);
    let mut now = at(1_000);
    let mut since_urgent = Duration::ZERO;
    for _ in 0..100 {
        let asked = asked_at(now, &mut pulls, 1);
        let [(id, priority, 1, false)] = asked[..] else { panic!("{asked:?}") };
        if priority == Priority::High {
            pulls.ended(now, id, false);
            since_urgent = Duration::ZERO;
        } else {
            pulls.delivered(now, &lane(Priority::Normal));
            now += Duration::from_millis(30);
            since_urgent += Duration::from_millis(30);
            assert!(since_urgent <= EMPTY_FOR + Duration::from_millis(30), "it is never asked");
        }
    }
    assert!(now > at(2_000), "it is not asked each time");
}

#[test]
fn an_expired_wait_at_an_urgent_lane_is_followed_by_a_request() {
    let mut pulls = answering(&[Priority::High, Priority::Normal]);
    for _ in 0..2 {
        let empty = asked(&mut pulls, 1);
        pulls.ended(at(1_000), empty[0].0, false);
    }
    let waiting = asked(&mut pulls, 1);
    assert!(matches!(waiting[..], [(_, Priority::High, 1, true), _]), "{waiting:?}");
    // From now on, the less urgent lane has tasks all the time.
    pulls.delivered(at(1_000), &lane(Priority::Normal));
    let next = asked(&mut pulls, 1);
    assert!(matches!(next[..], [(_, Priority::Normal, 1, false)]), "{next:?}");
    pulls.ended(at(1_000) + WAIT, waiting[0].0, false);
    pulls.delivered(at(1_000) + WAIT, &lane(Priority::Normal));
    let next = asked_at(at(1_000) + WAIT, &mut pulls, 1);
    assert!(matches!(next[..], [(_, Priority::High, 1, false)]), "{next:?}");
}

#[test]
fn a_lane_that_does_not_answer_holds_up_no_other() {
    let mut pulls = answering(&[Priority::High, Priority::Normal]);
    let empty = asked(&mut pulls, 1);
    pulls.ended(at(1_000), empty[0].0, false);
    pulls.leader_changed(&lane(Priority::High));
    let (mut now, mut served) = (at(1_000), 0);
    while now < at(20_000) {
        pulls.expire(now);
        for (id, priority, batch, _) in asked_at(now, &mut pulls, 1) {
            if priority == Priority::Normal {
                pulls.delivered(now, &lane(Priority::Normal));
                served += batch;
            }
            assert!(pulls.find(id).is_some() == (priority == Priority::High));
        }
        now += EMPTY_FOR;
    }
    assert!(served > 100, "only {served} tasks of 190");
    // Its first task shows that it is there again.
    pulls.delivered(now, &lane(Priority::High));
    let next = asked_at(now, &mut pulls, 3);
    assert!(matches!(next[..], [(_, Priority::High, 3, false)]), "{next:?}");
}
