//! Handles strays: processes that left their job's group and outlived the job. They are adopted,
//! reaped when they end, and killed at the end of the run.

use std::time::Duration;

use brigade_sys::orphans::{Child, has_members};

use super::Local;
use super::attempt::Live;
use super::streams::Token;
use crate::drive::Drive;
use crate::event::Event;

/// The time that a killed stray may take to be gone, as long as for a job; a busy machine needs
/// more than a second.
const STRAY_LIMIT: Duration = Duration::from_secs(5);

/// Children of a stray become ours when it ends. Deeper trees than this are not followed.
const MAX_GENERATIONS: usize = 16;

impl Drive<'_, Local> {
    /// Reports jobs that the system has stopped because they want to use the terminal.
    pub(super) fn note_stopped(&mut self) {
        while let Some(stopped) = Child::any_stopped() {
            if !stopped.wants_terminal {
                continue;
            }
            let is_it = |live: &&mut Live| live.process.pid() == stopped.pid;
            let Some(live) = self.place.live.iter_mut().flatten().find(is_it) else { continue };
            if !std::mem::replace(&mut live.wants_terminal, true) {
                let (number, pid) = (live.attempt.number, stopped.pid);
                self.client.event(Event::WantsTerminal { number, pid });
            }
        }
    }
}

impl Local {
    /// Reaps adopted processes that have ended. The ends of group leaders arrive through their
    /// pidfds instead.
    pub(super) fn reap_adopted(&mut self) {
        while let Some(dead) = Child::any_dead() {
            if self.is_leader(dead.pid()) {
                return;
            }
            dead.reap();
            // Its number may be that of a stray later.
            self.foreign.remove(&dead.pid());
        }
    }

    /// Remembers the group of a job that has ended, if the rest of it is still dying. Its members
    /// were killed with the job: they are no strays.
    pub(super) fn note_dying_group(&mut self, leader: u32) {
        if has_members(leader) {
            self.dying_groups.retain(|group| has_members(*group));
            self.dying_groups.insert(leader);
        }
    }

    /// Kills the processes that have outlived their jobs, at the end of the run.
    pub(super) fn kill_strays(&mut self, mut report: impl FnMut(Event)) {
        // The dead ones have not outlived the run.
        self.reap_adopted();
        // The guardian, those that were there before, and strays that could not be killed.
        let mut given_up = self.foreign.clone();
        given_up.insert(self.guardian.pid());
        for _ in 0..MAX_GENERATIONS {
            let strays: Vec<Child> = Child::all()
                .into_iter()
                .filter(|child| !given_up.contains(&child.pid()) && !self.is_leader(child.pid()))
                .collect();
            if strays.is_empty() {
                return;
            }
            for stray in strays {
                if self.stopper.check_process().is_err() {
                    return;
                }
                let number = stray.variable("PARALLEL_SEQ").and_then(|seq| seq.parse().ok());
                let (pid, name) = (stray.pid(), stray.name());
                let group = stray.group().filter(|group| *group != pid);
                let is_dying = group.is_some_and(|group| self.dying_groups.contains(&group));
                let is_gone = stray.kill(STRAY_LIMIT).is_ok();
                if !is_gone {
                    given_up.insert(pid);
                }
                if !name.is_empty() && !is_dying {
                    report(Event::Stray { pid, name, number, is_gone });
                }
            }
        }
    }

    /// Replaces a guardian that was killed. Without one, SIGKILL of this process would leave
    /// processes of jobs behind.
    pub(super) fn restart_guardian(&mut self) {
        self.poller.remove(self.guardian.pidfd());
        tracing::warn!("the guardian was killed; starting another one");
        let restarted = self.guardian.restart();
        let restarted =
            restarted.and_then(|()| self.poller.add(self.guardian.pidfd(), Token::GUARDIAN.0));
        if let Err(error) = restarted {
            tracing::warn!(%error, "cannot restart the guardian");
        }
    }

    fn is_leader(&self, pid: u32) -> bool {
        self.live.iter().flatten().any(|live| live.process.pid() == pid)
    }
}
