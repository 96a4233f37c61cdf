//! Each operation by itself, and the promises under random calls.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u64) -> Monotonic {
    Monotonic::ZERO.saturating_add(Duration::from_secs(seconds))
}

fn three_steps() -> Escalation<char, 3> {
    Escalation::new(at(0), [(SECOND, 'a'), (2 * SECOND, 'b'), (4 * SECOND, 'c')])
}

#[test]
fn each_step_is_taken_once_and_on_time() {
    let mut escalation = three_steps();
    let mut taken = Vec::new();
    while let Some(due) = escalation.next_deadline() {
        assert_eq!(
            escalation.advance(Monotonic::from_nanos(due.as_nanos() - 1)),
            None,
            "too early"
        );
        taken.push((due, escalation.advance(due)));
    }
    assert_eq!(taken, [(at(1), Some('a')), (at(3), Some('b')), (at(7), Some('c'))]);
    assert_eq!(escalation.advance(at(100)), None);
}

#[test]
fn a_late_step_leaves_the_next_one_its_time() {
    let mut escalation = three_steps();
    assert_eq!(escalation.advance(at(50)), Some('a'));
    assert_eq!(escalation.advance(at(50)), None);
    assert_eq!(escalation.next_deadline(), Some(at(52)));
}

#[test]
fn a_skipped_step_is_never_taken() {
    let mut escalation = three_steps();
    assert!(escalation.skip_to(at(0), 'b'));
    assert!(!escalation.skip_to(at(0), 'a'));
    assert!(!escalation.skip_to(at(0), 'b'));
    assert_eq!(escalation.next_deadline(), Some(at(4)));
    assert_eq!(escalation.advance(at(4)), Some('c'));
    assert!(!escalation.skip_to(at(4), 'c'));
}

#[test]
fn an_escalation_without_a_time_rests_until_a_skip() {
    let mut escalation = three_steps();
    escalation.reschedule(None);
    assert_eq!(escalation.advance(at(100)), None);
    assert!(escalation.skip_to(at(100), 'a'));
    assert_eq!(escalation.next_deadline(), Some(at(102)));
    escalation.reschedule(Some(at(110)));
    assert_eq!(escalation.advance(at(109)), None);
    assert_eq!(escalation.advance(at(110)), Some('b'));
}

#[test]
fn a_finished_escalation_has_no_deadline() {
    let mut escalation = three_steps();
    assert!(escalation.skip_to(at(0), 'c'));
    escalation.reschedule(Some(at(1)));
    assert_eq!(escalation.next_deadline(), None);
    let mut empty = Escalation::<char, 0>::new(at(0), []);
    assert_eq!((empty.next_deadline(), empty.advance(at(1))), (None, None));
}

#[derive(Debug, Clone)]
enum Call {
    Advance,
    SkipTo(usize),
    /// Reschedules the next step by this time from now on, or lets the escalation rest.
    Reschedule(Option<u64>),
}

fn call() -> impl Strategy<Value = Call> {
    let time = prop_oneof![8 => 0..50_u64, 1 => Just(u64::MAX)];
    prop_oneof![
        8 => Just(Call::Advance),
        1 => (0..5_usize).prop_map(Call::SkipTo),
        1 => proptest::option::of(time).prop_map(Call::Reschedule),
    ]
}

proptest! {
    #[test]
    fn steps_are_taken_in_order_once_and_never_early(
        waits in proptest::array::uniform5(prop_oneof![9 => 0..50_u64, 1 => Just(u64::MAX)]),
        calls in proptest::collection::vec((0..40_u64, call()), 0..60),
    ) {
        let mut index = 0;
        let steps = waits.map(|wait| {
            index += 1;
            (Duration::from_nanos(wait), index - 1)
        });
        let mut now = Monotonic::ZERO;
        let mut escalation = Escalation::new(now, steps);
        // The model: the next step, and its time.
        let due_after = |now: Monotonic, next: usize| {
            steps.get(next).map(|(wait, _)| now.saturating_add(*wait))
        };
        let (mut next, mut due) = (0, due_after(now, 0));
        for (time, call) in calls {
            now = now.saturating_add(Duration::from_nanos(time));
            match call {
                Call::Advance => {
                    let expected = due.filter(|due| *due <= now).map(|_| next);
                    prop_assert_eq!(escalation.advance(now), expected);
                    if expected.is_some() {
                        next += 1;
                        due = due_after(now, next);
                    }
                }
                Call::SkipTo(step) => {
                    prop_assert_eq!(escalation.skip_to(now, step), step >= next);
                    if step >= next {
                        next = step + 1;
                        due = due_after(now, next);
                    }
                }
                Call::Reschedule(time) => {
                    let wanted = time.map(|time| now.saturating_add(Duration::from_nanos(time)));
                    escalation.reschedule(wanted);
                    due = wanted.filter(|_| next < steps.len());
                }
            }
            prop_assert_eq!(escalation.next_deadline(), due);
        }
    }

    #[test]
    fn it_ends_after_the_sum_of_its_times(waits in proptest::array::uniform5(0..u64::MAX / 8)) {
        let steps = waits.map(|wait| (Duration::from_nanos(wait), ()));
        let mut escalation = Escalation::new(Monotonic::ZERO, steps);
        let mut end = Monotonic::ZERO;
        while let Some(due) = escalation.next_deadline() {
            end = due;
            prop_assert!(escalation.advance(due).is_some());
        }
        prop_assert_eq!(end.as_nanos(), waits.iter().sum::<u64>());
    }
}
