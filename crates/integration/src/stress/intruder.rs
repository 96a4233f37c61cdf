//! Kills and stops workers from outside, and sees to it that none stays stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brigade::Pool;
use brigade_testkit::processes::{self, Signal};
use brigade_testkit::{Random, pause};

/// What the intruder did.
#[derive(Debug, Default)]
pub(super) struct Intrusions {
    pub(super) killed: BTreeSet<u32>,
    pub(super) stopped: u64,
}

/// Intrudes until `done`; `share` of a hundred looks are used.
pub(super) fn run(pool: &Pool, mut random: Random, share: u64, done: &AtomicBool) -> Intrusions {
    let mut intrusions = Intrusions::default();
    // A worker that stopped is left so for a few looks.
    let mut patience: BTreeMap<u32, u64> = BTreeMap::new();
    while !done.load(Ordering::Acquire) {
        pause(Duration::from_millis(random.within(1..6)));
        let pids = pool.worker_pids();
        patience.retain(|pid, _| pids.contains(pid));
        for pid in pids.iter().copied().filter(|pid| processes::is_stopped(*pid)) {
            let left = patience.entry(pid).or_insert_with(|| random.within(0..6));
            if *left > 0 {
                *left -= 1;
            } else if random.chance(50) {
                processes::hit_child(pid, Signal::CONT);
                patience.remove(&pid);
            } else {
                intrusions.kill(pid);
            }
        }
        if pids.is_empty() || !random.chance(share) {
            continue;
        }
        let pid = *random.choose(&pids);
        if random.chance(75) {
            intrusions.kill(pid);
        } else if processes::hit_child(pid, Signal::STOP) {
            intrusions.stopped += 1;
        }
    }
    intrusions
}

impl Intrusions {
    fn kill(&mut self, pid: u32) {
        if processes::hit_child(pid, Signal::KILL) {
            self.killed.insert(pid);
        }
    }
}
