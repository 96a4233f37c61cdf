//! A task that writes garbage over the memory that its worker shares with the host harms only that
//! worker.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

use brigade::{Handle, Link, Pool, TaskError, TaskErrorKind};
use brigade_integration::builder;
use brigade_integration::scribble::{
    Scribble, Target, Then, WHILE, forges_a_result_in_its_arena, noted, scribbles,
};
use brigade_testkit::{BOUND, Gate, Watchdog, outcome, pass, pause, processes, wait_until};

/// Number of innocent tasks before the guilty one, and again after it.
const INNOCENT: u64 = 60;

/// Returns the pid of the worker and the square.
fn square(number: u64) -> (u32, u64) {
    (std::process::id(), number * number)
}

/// Leftovers are searched for in the whole process, so tests that share a process take turns.
static ALONE: Mutex<()> = Mutex::new(());

/// A pool in which a task holds one worker; others share innocent tasks with a guilty one among
/// them.
struct Scene {
    pool: Pool,
    scribble: Scribble,
    _folder: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Scene {
    fn new(target: Target, then: Then, seed: u64) -> Self {
        Self::with_workers(3, target, then, seed)
    }

    fn with_workers(workers: usize, target: Target, then: Then, seed: u64) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = builder(workers).link(Link::Ring).interrupt_for_stacks(true).build().unwrap();
        pool.warm_up().unwrap();
        // Until the pool has learned that tasks are short and prefetches.
        for handle in
            (0..300).map(|number| pool.submit(square, number).unwrap()).collect::<Vec<_>>()
        {
            outcome(handle).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        File::create(&journal).unwrap();
        Self {
            pool,
            scribble: Scribble { target, then, seed, journal },
            _folder: folder,
            _alone: alone,
        }
    }

    /// Returns the workers that were scribbled over.
    fn victims(&self) -> BTreeSet<u32> {
        noted(&self.scribble.journal).into_iter().collect()
    }

    fn submit_innocent(&self) -> Vec<(u64, Handle<(u32, u64)>)> {
        (0..INNOCENT).map(|number| (number, self.pool.submit(square, number).unwrap())).collect()
    }

    fn play(self) {
        let gate = Gate::new();
        let held = self.pool.submit(pass, gate.pass(7)).unwrap();
        gate.wait_for_arrivals(1);
        let healthy: BTreeSet<u32> = self.pool.worker_pids().into_iter().collect();
        let mut innocent = self.submit_innocent();
        let guilty = self.pool.submit(scribbles, self.scribble.clone()).unwrap();
        innocent.extend(self.submit_innocent());
        let guilty = outcome(guilty);
        let innocent: Vec<_> =
            innocent.into_iter().map(|(number, handle)| (number, outcome(handle))).collect();
        let victims = self.victims();
        let healthy = &healthy - &victims;
        for (number, outcome) in innocent {
            self.check(
                &outcome,
                |result| result.1 == number * number,
                &victims,
                |result| !healthy.contains(&result.0),
            );
        }
        self.check(&guilty, |seed| *seed == self.scribble.seed, &victims, |_| true);
        gate.open();
        assert_eq!(outcome(held).unwrap(), 7, "a task on another worker");
        assert_eq!(noted(&self.scribble.journal).len(), 1, "it was not to be retried");
        self.goes_on();
    }

    /// Checks that a value is right or comes from a worker whose messages were garbage, and that an
    /// error reports the death of this worker.
    fn check<R: std::fmt::Debug>(
        &self,
        outcome: &Result<R, TaskError>,
        is_right: impl Fn(&R) -> bool,
        victims: &BTreeSet<u32>,
        may_be_garbled: impl Fn(&R) -> bool,
    ) {
        let garbled = matches!(self.scribble.target, Target::Messages | Target::Everything);
        let fine = match outcome.as_ref().map_err(TaskError::kind) {
            Ok(result) => is_right(result) || garbled && may_be_garbled(result),
            Err(TaskErrorKind::WorkerDied { pid, .. }) => victims.contains(pid),
            Err(TaskErrorKind::Codec { .. } | TaskErrorKind::Function { .. }) => garbled,
            Err(_) => false,
        };
        // With the calls that the worker may have made up.
        let text = outcome.as_ref().map_or_else(|error| format!("{error:#}"), |_| String::new());
        assert!(fine, "{outcome:?} {text}; scribbled over: {victims:?}");
    }

    /// Checks that the pool works, ends, and leaves nothing behind.
    fn goes_on(self) {
        if self.scribble.then == Then::Lingers {
            pause(WHILE);
        }
        // Garbage may still wait for a task to meet it.
        let task = self.pool.task(square).retries(2);
        let handles: Vec<_> =
            (0..500).map(|number| (number, task.submit(number).unwrap())).collect();
        for (number, handle) in handles {
            assert_eq!(outcome(handle).unwrap().1, number * number);
        }
        self.pool.shutdown().unwrap();
        assert_eq!(processes::children(), [0; 0]);
    }
}

fn scribble(target: Target, then: Then) {
    for seed in 0..5 {
        let _watchdog = Watchdog::new(format!("{target:?}, {then:?}, seed {seed}"), 2 * BOUND);
        Scene::new(target, then, seed).play();
    }
}

macro_rules! variants {
    ($($name:ident: $target:ident, $then:ident;)*) => {
        $(#[test] fn $name() { scribble(Target::$target, Then::$then); })*
    };
}

variants! {
    positions: Positions, Returns;
    positions_in_a_task_that_goes_on: Positions, Dawdles;
    positions_while_others_use_them: Positions, Lingers;
    positions_before_a_crash: Positions, Aborts;
    states: SlotTable, Returns;
    states_in_a_task_that_goes_on: SlotTable, Dawdles;
    states_while_others_use_them: SlotTable, Lingers;
    states_before_a_crash: SlotTable, Aborts;
    bells: Bells, Returns;
    bells_of_a_worker_that_sleeps: Bells, Lingers;
    messages: Messages, Returns;
    messages_in_a_task_that_goes_on: Messages, Dawdles;
    messages_while_others_use_them: Messages, Lingers;
    messages_before_a_crash: Messages, Aborts;
    doorbell: Doorbell, Returns;
    records: Records, Returns;
    records_before_a_crash: Records, Aborts;
    records_while_others_use_them: Records, Lingers;
    everything: Everything, Returns;
    everything_in_a_task_that_goes_on: Everything, Dawdles;
    everything_while_others_use_it: Everything, Lingers;
    everything_before_a_crash: Everything, Aborts;
}

/// The records say anything about where the task is.
#[test]
fn stacks_that_a_worker_makes_up_harm_nobody() {
    for seed in 0..8 {
        let _watchdog = Watchdog::new(format!("seed {seed}"), 2 * BOUND);
        let scene = Scene::new(Target::Records, Then::Hangs, seed);
        let task = scene.pool.task(scribbles).deadline(WHILE / 2);
        let handle = task.submit(scene.scribble.clone()).unwrap();
        while !handle.is_done() {
            let _ = handle.stack().map(|stack| stack.to_string());
        }
        let guilty = outcome(handle).unwrap_err();
        assert!(guilty.is_deadline(), "{guilty:#}");
        scene.goes_on();
    }
}

/// The table says anything about the task, or nothing.
#[test]
fn deadlines_hold_for_a_task_that_overwrites_the_states() {
    for seed in 0..8 {
        let _watchdog = Watchdog::new(format!("seed {seed}"), 2 * BOUND);
        let scene = Scene::new(Target::SlotTable, Then::Hangs, seed);
        let task = || scene.pool.task(scribbles).deadline(WHILE / 2);
        for task in [task(), task().queue_deadline(WHILE / 4)] {
            let guilty = outcome(task.submit(scene.scribble.clone()).unwrap()).unwrap_err();
            assert!(guilty.is_deadline(), "{guilty:?}");
        }
        scene.goes_on();
    }
}

#[test]
fn an_arena_value_over_the_limit_is_a_breach() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Where a value may lie, and where a buffer may lie, which may have any length.
    for offset in [brigade_sys::arena::HEADER, 4096] {
        let pool = builder(2).link(Link::Ring).message_limit(64 << 10).build().unwrap();
        pool.warm_up().unwrap();
        let before = peak_memory();
        let forged = pool.submit(forges_a_result_in_its_arena, (offset as u64, 1 << 30)).unwrap();
        // The outcomes of another worker make the host look.
        wait_until("the end of the forger", BOUND, || {
            outcome(pool.submit(square, 3).unwrap()).unwrap();
            forged.is_done()
        });
        let error = outcome(forged).unwrap_err();
        assert!(error.is_worker_death(), "offset {offset}: {error:?}");
        let more = peak_memory().saturating_sub(before);
        assert!(more < 256 << 20, "offset {offset}: {more} bytes more at the peak");
    }
}

fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// The tasks behind the guilty one cannot be revoked, which says nothing about the guilty one.
#[test]
fn deadline_and_kill_hold_with_tasks_behind_a_scribbler() {
    for killed in [false, true] {
        let _watchdog = Watchdog::new(format!("killed: {killed}"), 2 * BOUND);
        let scene = Scene::with_workers(1, Target::SlotTable, Then::Hangs, 1);
        let task = scene.pool.task(scribbles);
        let task = if killed { task } else { task.deadline(3 * WHILE) };
        let guilty = task.submit(scene.scribble.clone()).unwrap();
        let behind: Vec<_> = (0..20).map(|n| scene.pool.submit(square, n).unwrap()).collect();
        if killed {
            wait_until("the task to begin", BOUND, || !scene.victims().is_empty());
            pause(WHILE);
            guilty.kill();
        }
        assert!(outcome(guilty).is_err());
        for handle in behind {
            // Nobody can read any more whether it had begun.
            let died = |error: TaskError| matches!(error.kind(), TaskErrorKind::WorkerDied { .. });
            assert!(outcome(handle).map_or_else(died, |_| true));
        }
        scene.goes_on();
    }
}
