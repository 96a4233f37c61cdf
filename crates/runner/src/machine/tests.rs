//! Tests of the machine with a simulated clock and simulated processes.

use std::num::NonZeroUsize;

use brigade_base::Retry;
use proptest::prelude::*;

use super::*;
use crate::limit::Limit;
use crate::outcome::Ending;

const SECOND: u64 = 1_000_000_000;

struct World {
    machine: Machine,
    /// Actions that were not carried out.
    actions: Vec<Action>,
    time: u64,
    /// Jobs that the source still has, by their number of cores.
    source: VecDeque<usize>,
    cores: usize,
    /// For each slot, the number of cores that its attempt holds.
    running: Vec<Option<usize>>,
    started: Vec<u64>,
    signals: Vec<(usize, Signal)>,
    notices: Vec<Notice>,
    /// Verdicts on jobs that will not start any more.
    given_up: Vec<Verdict>,
    /// Numbers of jobs that survived SIGKILL.
    abandoned: Vec<u64>,
}

fn settings(slots: usize) -> Settings {
    Settings { slots: NonZeroUsize::new(slots).expect("some"), ..Settings::default() }
}

impl World {
    fn new(settings: Settings, cores: usize, jobs: &[usize]) -> Self {
        Self {
            running: vec![None; settings.slots.get()],
            machine: Machine::new(settings, Monotonic::from_nanos(0)),
            actions: Vec::new(),
            time: 0,
            source: jobs.iter().copied().collect(),
            cores,
            started: Vec::new(),
            signals: Vec::new(),
            notices: Vec::new(),
            given_up: Vec::new(),
            abandoned: Vec::new(),
        }
    }

    fn now(&self) -> Monotonic {
        Monotonic::from_nanos(self.time)
    }

    /// Reports an event, and keeps the actions for later.
    fn report(&mut self, event: Event) {
        self.machine.handle(self.now(), event, &mut self.actions);
        self.check();
    }

    /// Carries out the machine's actions until it waits. Returns the time to wait for, or `None`
    /// when the run is over.
    #[expect(clippy::option_option, reason = "over, waiting without a limit, waiting until a time")]
    fn settle(&mut self) -> Option<Option<u64>> {
        loop {
            if self.actions.is_empty() {
                self.report(Event::Ready);
                if self.actions.is_empty() {
                    return Some(self.machine.next_deadline().map(Monotonic::as_nanos));
                }
            }
            match self.actions.remove(0) {
                Action::Pull => match self.source.pop_front() {
                    Some(width) => {
                        let job = Box::new(Job::new("job").cores(width));
                        self.report(Event::Supplied { job, remaining: None });
                    }
                    None => self.report(Event::SupplyEnded),
                },
                Action::Start(slot, attempt) => {
                    assert_eq!(self.running[slot], None, "a slot runs one attempt");
                    let width = attempt.job.cores.unwrap_or(1);
                    if width > self.cores {
                        self.report(Event::NoCores(slot, attempt));
                    } else {
                        self.cores -= width;
                        self.running[slot] = Some(width);
                        self.started.push(attempt.number);
                        self.report(Event::Started(slot, attempt));
                    }
                }
                Action::Signal(slot, signal) => self.signals.push((slot, signal)),
                Action::Suspend => self.report(Event::Resumed),
                Action::Notify(notice) => self.notices.push(notice),
                Action::Conclude(None, verdict) => self.given_up.push(verdict),
                Action::Conclude(Some(_), verdict) => {
                    assert_eq!(verdict.ending, Ending::NotKilled);
                    self.abandoned.push(verdict.attempt.number);
                }
                Action::Abandon(slot) => {
                    self.cores += self.running[slot].take().expect("runs");
                    self.report(Event::Ended(slot, Ending::NotKilled));
                }
                Action::Finish => {
                    assert!(self.running.iter().all(Option::is_none), "finished while jobs ran");
                    return None;
                }
            }
        }
    }

    /// Ends the attempt on a slot, and returns the verdict.
    fn exit(&mut self, slot: usize, code: i32) -> Verdict {
        self.cores += self.running[slot].take().expect("runs");
        self.report(Event::Ended(slot, Ending::Exited(code)));
        let concluded =
            |action: &Action| matches!(action, Action::Conclude(Some(of), _) if *of == slot);
        let at = self.actions.iter().position(concluded).expect("a verdict");
        match self.actions.remove(at) {
            Action::Conclude(_, verdict) => verdict,
            other => panic!("{other:?}"),
        }
    }

    fn check(&self) {
        let machine = &self.machine;
        let of_slots = machine.slots.iter().flatten().filter(|running| running.timer.is_some());
        let others = usize::from(machine.stop_timer.is_some())
            + usize::from(machine.settings.tick.is_some());
        assert_eq!(machine.timers.len(), of_slots.count() + others, "a timer has no owner");
        for (slot, running) in machine.slots.iter().enumerate() {
            let starts = |action: &Action| matches!(action, Action::Start(on, _) if *on == slot);
            let is_free = running.is_none() && !self.actions.iter().any(starts);
            assert_eq!(is_free, machine.free.contains(&slot), "slot {slot}");
            if let Some(timer) = running.as_ref().and_then(|running| running.timer) {
                assert_eq!(machine.timers.get(timer), Some(&Timer::Slot(slot)));
            }
        }
    }
}

#[test]
fn narrow_jobs_do_not_overtake_a_wide_one() {
    let mut world = World::new(settings(2), 2, &[1, 2, 1, 1]);
    world.settle();
    assert_eq!(world.started, [1], "the second needs both cores, so the third waits behind it");
    world.exit(0, 0);
    world.settle();
    assert_eq!(world.started, [1, 2]);
    world.exit(0, 0);
    world.settle();
    assert_eq!(world.started, [1, 2, 3, 4]);
}

#[test]
fn an_attempt_over_its_limit_gets_sigterm_then_sigkill() {
    let limit = Limit::Fixed(Duration::from_secs(5));
    let mut world = World::new(Settings { limit: Some(limit), ..settings(1) }, 1, &[1]);
    assert_eq!(world.settle(), Some(Some(5 * SECOND)));
    world.time = 5 * SECOND;
    assert_eq!(world.settle(), Some(Some(6 * SECOND)));
    assert_eq!(world.signals, [(0, Signal::Terminate)]);
    world.time = 6 * SECOND;
    assert_eq!(world.settle(), Some(Some(11 * SECOND)));
    assert_eq!(world.signals[1..], [(0, Signal::Kill)]);
    let verdict = world.exit(0, 0);
    assert_eq!(verdict.ending, Ending::TimedOut { limit: Duration::from_secs(5) });
    assert_eq!(world.settle(), None);
}

#[test]
fn a_retry_waits_until_the_previous_attempt_is_reaped() {
    let mut world = World::new(Settings { retry: Retry::of(1), ..settings(2) }, 2, &[1]);
    world.settle();
    assert!(world.exit(0, 1).is_retried);
    world.settle();
    assert_eq!(world.started, [1, 1]);
    assert!(!world.exit(0, 1).is_retried, "there is one more attempt, not two");
    assert_eq!(world.settle(), None);
}

#[test]
fn only_late_jobs_are_tried_again_if_that_is_asked_for() {
    let limit = Some(Limit::Fixed(Duration::from_secs(5)));
    let retries_only_timeouts = true;
    let retry = Retry::of(1);
    let settings = Settings { retry, retries_only_timeouts, limit, ..settings(1) };
    let mut world = World::new(settings, 1, &[1, 1]);
    world.settle();
    assert!(!world.exit(0, 3).is_retried, "it failed in time");
    world.settle();
    world.time = 5 * SECOND;
    world.settle();
    assert!(world.exit(0, 0).is_retried, "it was late");
    world.settle();
    assert_eq!(world.started, [1, 2, 2]);
}

/// Returns two retries after pauses of two and four seconds.
fn pauses() -> Retry {
    Retry::of(2).delay(Duration::from_secs(2))
}

#[test]
fn others_run_during_the_pause_before_a_retry() {
    let mut world = World::new(Settings { retry: pauses(), ..settings(1) }, 1, &[1, 1]);
    world.settle();
    assert!(world.exit(0, 1).is_retried);
    world.settle();
    assert_eq!(world.started, [1, 2]);
    world.time = SECOND;
    world.exit(0, 0);
    assert_eq!(world.settle(), Some(Some(2 * SECOND)), "the run waits for the retry");
    world.time = 2 * SECOND;
    world.settle();
    assert_eq!(world.started, [1, 2, 1]);
    assert!(world.exit(0, 1).is_retried);
    assert_eq!(world.settle(), Some(Some(6 * SECOND)));
    world.time = 6 * SECOND;
    world.settle();
    assert!(!world.exit(0, 1).is_retried);
    assert_eq!(world.settle(), None);
}

#[test]
fn a_pause_that_ends_while_all_slots_are_taken_waits_for_one() {
    let mut world = World::new(Settings { retry: pauses(), ..settings(1) }, 1, &[1, 1]);
    world.settle();
    world.exit(0, 1);
    assert_eq!(world.settle(), Some(Some(2 * SECOND)));
    world.time = 2 * SECOND;
    assert_eq!(world.settle(), Some(None), "nothing is due any more");
    world.exit(0, 0);
    world.settle();
    assert_eq!(world.started, [1, 2, 1]);
}

#[test]
fn a_stop_and_a_halt_end_a_pause_at_once() {
    let halt = "soon,fail=1".parse().ok();
    let settings = Settings { retry: pauses(), halt, ..settings(2) };
    let ended = |end: fn(&mut World)| {
        let mut world = World::new(settings.clone(), 2, &[1, 1]);
        world.settle();
        assert!(world.exit(0, 3).is_retried);
        end(&mut world);
        assert_eq!((world.settle(), world.given_up.len()), (None, 1));
        let Verdict { attempt, ending, .. } = world.given_up.remove(0);
        assert_eq!((attempt.number, attempt.nth, ending), (1, 1, Ending::Exited(3)));
    };
    ended(|world| {
        world.report(Event::Stop);
        world.exit(1, 0);
    });
    ended(|world| {
        world.report(Event::Drain(Reason::Stopped));
        world.exit(1, 0);
    });
    ended(|world| {
        world.machine.settings.retry = Retry::of(0);
        assert!(world.exit(1, 3).is_halting, "it keeps the paused job from another attempt");
    });
}

#[test]
fn a_new_median_limits_running_jobs() {
    let settings = Settings { limit: Some(Limit::OfMedian(5.0)), ..settings(2) };
    let mut world = World::new(settings, 2, &[1; 4]);
    world.settle();
    for second in 1..=3 {
        world.time = second * SECOND;
        world.exit(1, 0);
        world.settle();
    }
    // Job 1 has run since the beginning; three others took one second each.
    let until = world.settle().flatten().expect("limited");
    assert!((4_990_000_000..=5_010_000_000).contains(&until), "{until}");
}

#[test]
fn a_stopped_run_escalates_from_sigint_to_sigkill() {
    let mut world = World::new(settings(1), 1, &[1, 1]);
    world.settle();
    world.report(Event::Stop);
    let mut steps = vec![];
    while let Some(Some(until)) = world.settle() {
        if world.signals.last() == Some(&(0, Signal::Kill)) {
            break;
        }
        steps.push(until / 1_000_000);
        world.time = until;
    }
    assert_eq!(steps, [500, 2500, 4500, 6500, 8500, 10_500, 11_000]);
    let signals: Vec<Signal> = world.signals.iter().map(|(_, signal)| *signal).collect();
    assert_eq!(signals, [Signal::Interrupt, Signal::Terminate, Signal::Kill]);
    let left: Vec<u64> = world
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::Grace { left, .. } => Some(left.as_secs()),
            _ => None,
        })
        .collect();
    assert_eq!(left, [10, 8, 6, 4, 2]);
    assert_eq!(world.exit(0, 0).ending, Ending::Stopped);
    assert_eq!(world.settle(), None);
    assert_eq!(world.started, [1], "nothing was started after the stop");
}

#[test]
fn a_pause_stops_and_continues_all_jobs() {
    let mut world = World::new(settings(3), 3, &[1, 1]);
    world.settle();
    world.report(Event::Suspend);
    world.settle();
    let stopped = [(0, Signal::Stop), (1, Signal::Stop)];
    let continued = [(0, Signal::Continue), (1, Signal::Continue)];
    assert_eq!(world.signals, [stopped, continued].concat());
}

#[test]
fn a_second_stop_kills_immediately() {
    let mut world = World::new(settings(1), 1, &[1]);
    world.settle();
    world.report(Event::Stop);
    world.report(Event::Stop);
    world.settle();
    assert_eq!(world.signals.last(), Some(&(0, Signal::Kill)));
}

#[test]
fn a_stop_does_not_wait_for_an_unkillable_process() {
    let mut world = World::new(settings(2), 2, &[1, 1]);
    world.settle();
    world.report(Event::Stop);
    world.report(Event::Stop);
    while let Some(until) = world.settle() {
        assert!(world.abandoned.is_empty());
        world.time = until.expect("bounded");
    }
    world.abandoned.sort_unstable();
    assert_eq!((world.time, world.abandoned), (5 * SECOND, vec![1, 2]));
}

#[test]
fn a_limit_does_not_wait_for_an_unkillable_process() {
    let limit = Some(Limit::Fixed(Duration::from_secs(5)));
    let mut world = World::new(Settings { limit, retry: Retry::of(3), ..settings(1) }, 1, &[1, 1]);
    while world.started.len() < 2 {
        world.time = world.settle().flatten().expect("bounded");
    }
    assert_eq!((world.started, world.abandoned), (vec![1, 2], vec![1]), "and is not retried");
}

#[test]
fn jobs_that_were_taken_but_not_started_get_an_outcome() {
    let mut world = World::new(Settings { retry: Retry::of(1), ..settings(2) }, 2, &[1, 2, 1]);
    world.settle();
    world.exit(0, 3);
    world.report(Event::Stop);
    assert_eq!(world.settle(), None);
    let given_up: Vec<_> = world
        .given_up
        .iter()
        .map(|verdict| (verdict.attempt.number, verdict.attempt.nth, verdict.ending.clone()))
        .collect();
    assert_eq!(given_up, [(2, 0, Ending::Stopped), (1, 1, Ending::Exited(3))]);
}

#[test]
fn a_stop_during_a_canary_is_not_a_failed_canary() {
    let canary = Some(Job::new("canary"));
    let mut world = World::new(Settings { canary, ..settings(1) }, 1, &[1]);
    world.settle();
    world.report(Event::Stop);
    assert_eq!(world.exit(0, 0).ending, Ending::Stopped);
    assert_eq!(world.settle(), None);
    let has_failed = |notice: &Notice| matches!(notice, Notice::Halting(Reason::Failed));
    assert!(!world.notices.iter().any(has_failed), "{:?}", world.notices);
}

#[test]
fn the_outcome_that_meets_the_halt_policy_is_marked() {
    let halt = Some("now,fail=1".parse().expect("valid"));
    let mut world = World::new(Settings { halt, ..settings(3) }, 3, &[1, 1, 1]);
    world.settle();
    assert!(!world.exit(0, 0).is_halting);
    assert!(world.exit(1, 7).is_halting);
    assert!(!world.exit(2, 8).is_halting);
}

#[test]
fn a_policy_that_the_last_job_meets_halts_nothing() {
    for (policy, others, is_halting) in
        [("now,fail=1", 0, false), ("soon,fail=1", 1, false), ("now,fail=1", 1, true)]
    {
        let halt = Some(policy.parse().expect("valid"));
        let mut world = World::new(Settings { halt, ..settings(2) }, 2, &vec![1; 1 + others]);
        world.settle();
        world.machine.note_remaining(Some(0));
        let verdict = world.exit(0, 7);
        assert!(verdict.is_decisive, "{policy}");
        assert_eq!(verdict.is_halting, is_halting, "{policy}");
    }
}

#[test]
fn only_a_wait_for_others_is_reported_once_until_a_start() {
    let mut world = World::new(settings(2), 2, &[2, 2, 2]);
    world.settle();
    assert!(world.notices.is_empty(), "the second job waits for the first");
    world.exit(0, 0);
    world.cores = 0;
    world.settle();
    assert!(matches!(world.notices[..], [Notice::Waiting { need: Need::Cores }]));
    world.report(Event::CoresFreed);
    world.settle();
    assert_eq!(world.notices.len(), 1);
    world.cores = 2;
    world.report(Event::CoresFreed);
    world.settle();
    world.exit(0, 0);
    world.cores = 0;
    world.settle();
    assert_eq!(world.notices.len(), 2);
}

#[test]
fn no_job_starts_before_the_canary_has_passed() {
    let canary = Some(Job::new("canary"));
    let mut world = World::new(Settings { canary, ..settings(2) }, 2, &[1, 1]);
    world.settle();
    assert_eq!(world.started, [0]);
    world.exit(0, 0);
    world.settle();
    assert_eq!(world.started, [0, 1, 2]);
}

#[test]
fn no_job_starts_after_the_canary_has_failed() {
    let canary = Some(Job::new("canary"));
    let mut world = World::new(Settings { canary, ..settings(2) }, 2, &[1, 1]);
    world.settle();
    world.exit(0, 1);
    assert_eq!(world.settle(), None);
    assert_eq!(world.started, [0]);
}

#[test]
fn halting_now_ends_running_jobs_and_halting_soon_does_not() {
    for (policy, signals) in [("now,fail=1", 1), ("soon,fail=1", 0)] {
        let halt = Some(policy.parse().expect("valid"));
        let mut world = World::new(Settings { halt, ..settings(2) }, 2, &[1, 1, 1]);
        world.settle();
        world.exit(0, 1);
        world.settle();
        assert_eq!((world.started.len(), world.signals.len()), (2, signals), "{policy}");
        world.exit(1, 0);
        assert_eq!(world.settle(), None);
    }
}

#[test]
fn starts_are_separated_by_the_delay() {
    let delay = Duration::from_secs(1);
    let mut world = World::new(Settings { delay, ..settings(3) }, 3, &[1, 1, 1]);
    assert_eq!(world.settle(), Some(Some(SECOND)));
    assert_eq!(world.started, [1]);
    world.time = SECOND;
    assert_eq!(world.settle(), Some(Some(2 * SECOND)));
    assert_eq!(world.started, [1, 2]);
}

proptest! {
    #[test]
    fn every_job_ends_exactly_once_in_any_order_of_events(
        widths in prop::collection::vec(1_usize..=4, 0..30),
        choices in prop::collection::vec((0_usize..4, 0_i32..3), 0..400),
        slots in 1_usize..=4,
        retries in 0_u32..3,
        pause in 0_u64..5,
        stop_at in prop::option::of(0_usize..40),
    ) {
        let limit = Some(Limit::Fixed(Duration::from_secs(3)));
        let retry = Retry::of(retries).delay(Duration::from_secs(pause)).jitter(0.5);
        let settings = Settings { retry, limit, ..settings(slots) };
        let mut world = World::new(settings, 4, &widths);
        let mut over = vec![];
        let mut choices = choices.into_iter().cycle();
        let mut step = 0;
        while let Some(until) = world.settle() {
            step += 1;
            if stop_at == Some(step) {
                world.report(Event::Stop);
                continue;
            }
            let (pick, code) = choices.next().unwrap_or((0, 0));
            let running: Vec<usize> =
                (0..slots).filter(|slot| world.running[*slot].is_some()).collect();
            // While nothing runs, an attempt is in its pause, which only time ends.
            if let Some(until) = until.filter(|_| code == 0 || running.is_empty()) {
                world.time = until;
            }
            if let Some(slot) = running.get(pick % running.len().max(1)) {
                world.time += 1;
                let verdict = world.exit(*slot, code);
                if !verdict.is_retried {
                    over.push(verdict.attempt.number);
                }
            } else {
                prop_assert!(until.is_some(), "nothing runs and nothing will happen");
            }
        }
        over.extend(world.given_up.iter().map(|verdict| verdict.attempt.number));
        over.extend(&world.abandoned);
        over.sort_unstable();
        // A stop leaves jobs in the source; each job that was taken has one outcome.
        let taken = widths.len() - world.source.len();
        prop_assert_eq!(&over, &(1..=taken as u64).collect::<Vec<_>>());
        if stop_at.is_none_or(|stop| stop > step) {
            prop_assert_eq!(taken, widths.len());
        }
        prop_assert_eq!(world.cores, 4);
    }
}
