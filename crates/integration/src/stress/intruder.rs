//! Kills and stops workers from outside, and makes sure that none stays stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use brigade::Pool;
use brigade_testkit::processes::{self, Signal};
use brigade_testkit::{Random, pause};

use super::plan::happens;

/// Actions of the intruder. Each is recorded before it is done, so that nobody sees its
/// consequences first.
#[derive(Debug, Default)]
pub(super) struct Intrusions {
    killed: Mutex<BTreeSet<u32>>,
    stopped: AtomicU64,
}

/// Kills and stops workers until `done`, in `share` of a thousand looks, and kills fork servers.
pub(super) fn run(
    pool: &Pool,
    mut random: Random,
    (share, kills_servers): (u64, bool),
    done: &AtomicBool,
    intrusions: &Intrusions,
) {
    // A stopped worker is left so for a few looks.
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
        if pids.is_empty() || !happens(&mut random, share) {
            continue;
        }
        if kills_servers && random.chance(10) {
            for server in processes::children().into_iter().filter(|pid| is_fork_server(*pid)) {
                processes::hit_child(server, Signal::KILL);
            }
        }
        let pid = *random.choose(&pids);
        if random.chance(75) {
            intrusions.kill(pid);
        } else {
            intrusions.stopped.fetch_add(1, Ordering::Relaxed);
            if !processes::hit_child(pid, Signal::STOP) {
                intrusions.stopped.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

fn is_fork_server(pid: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    name.is_ok_and(|name| name.trim_end() == "brigade-fork")
}

impl Intrusions {
    /// Returns the processes that were killed.
    pub(super) fn killed(&self) -> BTreeSet<u32> {
        self.killed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of processes that were stopped.
    pub(super) fn stopped(&self) -> u64 {
        self.stopped.load(Ordering::Relaxed)
    }

    fn kill(&self, pid: u32) {
        let killed = || self.killed.lock().unwrap_or_else(PoisonError::into_inner);
        // The system may have recycled the pid of a process killed earlier.
        let is_new = killed().insert(pid);
        if !processes::hit_child(pid, Signal::KILL) && is_new {
            killed().remove(&pid);
        }
    }
}
