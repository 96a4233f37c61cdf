//! Tasks that scribble and then act as ordered.

use std::thread;
use std::time::{Duration, Instant};

use brigade_testkit::{Random, pause};
use brigade_testkit_sys::misdeeds;
use rustix::process::{Signal, getpid, kill_process, setsid};
use serde::{Deserialize, Serialize};

use super::Wire;
use super::notes::{self, Kind};
use super::targets::{Scene, Target};

/// Time that a task dawdles, a leftover thread goes on, or a copy lives.
const WHILE: Duration = Duration::from_millis(100);

/// Deadline of a guilty task.
pub(super) const LIMIT: Duration = Duration::from_millis(200);

/// The task's action after it has scribbled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Then {
    Returns,
    Dawdles,
    /// It returns and leaves a thread behind that goes on scribbling for a while.
    Lingers,
    /// It returns and leaves a copy of its process behind that holds all its descriptors for a
    /// while.
    LeavesACopy,
    /// The same, with the copy in a session of its own.
    LeavesACopyElsewhere,
    Aborts,
    Hangs,
}

const THEN: [Then; 7] = [
    Then::Returns,
    Then::Dawdles,
    Then::Lingers,
    Then::LeavesACopy,
    Then::LeavesACopyElsewhere,
    Then::Aborts,
    Then::Hangs,
];

/// An argument for [`scribbles`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    number: u64,
    pub(super) targets: Vec<Target>,
    then: Then,
    seed: u64,
    link: Wire,
    /// The first descriptor that may be harmed.
    first: i32,
}

impl Order {
    pub(super) fn new(random: &mut Random, number: u64, link: Wire, spare_output: bool) -> Self {
        let targets = (0..random.within(1..4)).map(|_| Target::any(random, link)).collect();
        let then = *random.choose(&THEN);
        let first = if spare_output { 3 } else { 0 };
        Self { number, targets, then, seed: random.number(), link, first }
    }
}

/// The task function. Returns its number.
pub(super) fn scribbles(order: Order) -> u64 {
    let Order { number, targets, then, seed, link, first } = order;
    notes::note(Kind::Guilty, number);
    let mut scene = Scene { random: Random::new(seed), link, first };
    let mut all = move || targets.iter().for_each(|target| target.scribble(&mut scene));
    all();
    match then {
        Then::Returns => {}
        Then::Dawdles => pause(WHILE),
        Then::Lingers => {
            thread::spawn(move || {
                let begin = Instant::now();
                while begin.elapsed() < WHILE {
                    all();
                }
            });
        }
        Then::LeavesACopy => leave_a_copy(false),
        Then::LeavesACopyElsewhere => leave_a_copy(true),
        Then::Aborts => std::process::abort(),
        Then::Hangs => brigade_testkit::faults::hangs(()),
    }
    number
}

fn leave_a_copy(elsewhere: bool) {
    if matches!(misdeeds::fork(), Ok(None)) {
        if elsewhere {
            // This fails only for the leader of a group, which a copy is not.
            let _ = setsid();
        }
        pause(5 * WHILE);
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
