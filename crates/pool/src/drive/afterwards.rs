//! What is left to do once the core's lock is released.
//!
//! Code of users never runs under that lock, nor on a thread that others depend on. What must be in time goes first: the
//! reaper is woken, workers are killed, those who wait are told. Then large memory is freed, and wakers run last, where they
//! may: see `foreign`.

use std::sync::Arc;

use brigade_wire::WorkerId;
use tracing::Level;

use super::foreign::Foreign;
use super::notes::Notes;
use super::owner;
use super::post::Life;
use super::shared::Shared;
use crate::cell::{TaskCell, Told, Watch};
use crate::payload::Argument;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Afterwards {
    to_tell: Vec<Watch>,
    to_kill: Vec<(WorkerId, Arc<Life>, bool)>,
    notes: Notes,
    remains: Vec<Remains>,
    pub(super) wake_reaper: bool,
    pub(super) ended: bool,
}

/// What is not freed under the lock.
pub(super) enum Remains {
    Argument(Argument),
    /// Perhaps the last reference to a task with its outcome.
    Task(Arc<TaskCell>),
}

impl Remains {
    fn takes_a_while(&self) -> bool {
        match self {
            Self::Argument(argument) => argument.size() >= LONG,
            // Whoever has it as well frees it.
            Self::Task(task) => Arc::strong_count(task) == 1,
        }
    }
}

/// So many bytes are given back to the system in a quarter of a millisecond.
const LONG: usize = 1 << 20;

impl Afterwards {
    /// The reaper knows its next deadline already.
    pub(super) fn is_armed(&mut self) {
        self.wake_reaper = false;
    }

    pub(super) fn note(&mut self, level: Level, emit: impl FnOnce(&str) + Send + 'static) {
        self.notes.add(level, emit);
    }

    pub(super) fn tell(&mut self, watch: Watch) {
        self.to_tell.push(watch);
    }

    /// Finding what a process has started takes a while.
    pub(super) fn kill(&mut self, worker: WorkerId, life: Arc<Life>, at_once: bool) {
        self.to_kill.push((worker, life, at_once));
    }

    pub(super) fn free(&mut self, remains: Remains) {
        self.remains.push(remains);
    }

    pub(super) fn is_empty(&self) -> bool {
        let Self { to_tell, to_kill, notes, remains, wake_reaper, ended } = self;
        to_tell.is_empty()
            && to_kill.is_empty()
            && notes.is_empty()
            && remains.is_empty()
            && !wake_reaper
            && !ended
    }

    /// Whether code of users is to be run, which may take long.
    pub(super) fn has_foreign_code(&self) -> bool {
        self.to_tell.iter().any(Watch::has_waker)
    }

    pub(super) fn run(self, shared: &Shared) {
        if self.wake_reaper {
            shared.reaper.wake();
        }
        for (worker, life, at_once) in self.to_kill {
            shared.kill_worker(worker, &life, at_once);
        }
        shared.console.note_all(self.notes);
        let mut foreign = Vec::new();
        for watch in self.to_tell {
            let Told { at_the_doorbell, waker } = watch.tell();
            if at_the_doorbell && let Some(collecting) = &shared.collecting {
                collecting.doorbell.caller().wake();
            }
            foreign.extend(waker.map(|(task, waker)| Foreign::Waker(task, waker)));
        }
        let mut remains = self.remains;
        if owner::is_depended_on() {
            remains.retain(Remains::takes_a_while);
            if !remains.is_empty() {
                shared.cleaner.free(remains);
            }
        } else {
            drop(remains);
        }
        if !foreign.is_empty() {
            shared.run_foreign(foreign);
        }
        if self.ended {
            shared.release_threads();
        }
    }
}
