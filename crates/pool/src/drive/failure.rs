//! What a pool does when it cannot go on as it should: it breaks with a reason, and nobody waits for what will not come.

use std::fmt;
use std::io;
use std::sync::{Arc, PoisonError};

use brigade_wire::WorkerId;
use tracing::{Level, warn};

use super::outcome::Facts;
use super::post::Life;
use super::shared::Shared;
use crate::machine::Event;

impl Shared {
    /// A thread of the pool cannot do its part any more. The pool breaks and its workers are ended, so that all tasks have
    /// outcomes.
    pub(super) fn give_up(&self, part: &str, problem: &dyn fmt::Display) {
        let reason = format!("failed to {part}: {problem}");
        self.step(Event::Break { reason: reason.into() }, Facts::Nothing);
        let workers: Vec<WorkerId> =
            self.lock().posts.iter().flatten().map(|post| post.id).collect();
        for worker in workers {
            self.step(Event::Misbehaved { worker }, Facts::Nothing);
        }
    }

    /// A worker may not be killed: this process has other rights than when it started the worker. It is left behind, its death
    /// is reported as if it had come, and the pool breaks, as others will be the same.
    pub(super) fn could_not_kill(&self, worker: WorkerId, life: &Arc<Life>, error: io::Error) {
        let pid = life.pid().unwrap_or(0);
        let reason = format!(
            "{worker} (pid {pid}) could not be killed and was left behind: {error}; a program that gives up rights does so before it builds its pool"
        );
        self.console.note(Level::WARN, move |pool| {
            warn!(pool, %worker, pid, %error, "failed to kill a worker, which is left behind");
        });
        self.left_behind.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
        self.step(Event::Break { reason: reason.into() }, Facts::Nothing);
        life.leave_behind();
        self.reaper.wake();
    }

    /// The processes that could not be killed.
    pub(super) fn left_behind(&self) -> Vec<u32> {
        self.left_behind.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
