//! Processes that have left their job's group and outlived it: adopted, reaped when they end, ended with the run.

use std::collections::HashSet;
use std::time::Duration;

use brigade_sys::orphans::Child;
use rustix::event::epoll;

use super::Drive;
use super::streams::{Token, forget};
use crate::event::Event;

/// How long a killed stray may take to be gone.
const STRAY_LIMIT: Duration = Duration::from_secs(1);

/// Strays may have children that become ours when they end; a tree deeper than this is not followed.
const GENERATIONS: usize = 16;

impl Drive<'_> {
    /// Reaps adopted processes that have ended. A leader's end is told by its own pidfd.
    pub(super) fn reap_adopted(&self) {
        while let Some(dead) = Child::any_dead() {
            if self.is_leader(dead.pid()) {
                return;
            }
            dead.reap();
        }
    }

    /// Ends what has outlived its job, at the end of the run.
    pub(super) fn end_strays(&mut self) {
        self.kill_strays(|drive, event| (drive.tell)(event));
    }

    pub(super) fn kill_strays(&mut self, mut tell: impl FnMut(&mut Self, Event<'_>)) {
        // Those that cannot be killed, and those that nobody waits for any more.
        let mut given_up = HashSet::from([self.guardian.pid()]);
        for _ in 0..GENERATIONS {
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
                let is_gone = stray.kill(STRAY_LIMIT).is_ok();
                if !is_gone {
                    given_up.insert(pid);
                }
                if !name.is_empty() {
                    tell(self, Event::Stray { pid, name: &name, number, is_gone });
                }
            }
        }
    }

    /// Somebody has killed the guardian. Without one, a SIGKILL of this process would leave what jobs have started.
    pub(super) fn restart_guardian(&mut self) {
        forget(&self.epoll, self.guardian.pidfd());
        tracing::warn!("the guardian was killed; another one is started");
        let restarted = self.guardian.restart().and_then(|()| {
            let death = epoll::EventData::new_u64(Token::GUARDIAN.into());
            Ok(epoll::add(&self.epoll, self.guardian.pidfd(), death, epoll::EventFlags::IN)?)
        });
        if let Err(error) = restarted {
            tracing::warn!(%error, "there is no guardian any more");
        }
    }

    fn is_leader(&self, pid: u32) -> bool {
        self.live.iter().flatten().any(|live| live.leader.pid() == pid)
    }
}
