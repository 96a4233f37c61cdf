//! Calls that change how many workers there are, up to the end of them all. They wait for what the pool's threads do.

use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::afterwards::Afterwards;
use super::foreign::Foreign;
use super::outcome::Facts;
use super::shared::{Core, Shared, now};
use crate::error::PoolError;
use crate::machine::{Event, Shutdown};
use crate::pool::ShutdownReport;

impl Shared {
    pub(crate) fn warm_up(&self) -> Result<(), PoolError> {
        self.is_open()?;
        self.step(Event::WarmUp, Facts::Nothing);
        let mut core = self.lock();
        loop {
            if let Some(reason) = core.machine.broken_reason() {
                return Err(PoolError::Broken { reason: reason.to_string() });
            }
            if !core.machine.is_open() {
                return Err(PoolError::Closed);
            }
            if let Some(reason) = core.machine.not_warmed() {
                return Err(PoolError::Start { reason: reason.to_string() });
            }
            if !core.machine.is_warming() {
                return Ok(());
            }
            core = self.wait_for_progress(core);
        }
    }

    pub(crate) fn resize(&self, workers: usize) -> Result<(), PoolError> {
        // One after the other: cores are reserved before the machine decides, and the last decision counts for both.
        let turn = self.resizing.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_open()?;
        let cores = self.config.cores.as_ref();
        if let Some(cores) = cores {
            cores.reserve(workers, "resize")?;
        }
        let mut after = Afterwards::default();
        let mut core = self.lock();
        core.handle(now(), Event::Resize { workers }, Facts::Nothing, self, &mut after);
        // A pool that was closed meanwhile keeps its size.
        let target = core.machine.target();
        self.target.store(target, Ordering::Relaxed);
        let wanted = if core.machine.has_ended() { 0 } else { target };
        let has_process = |slot: usize| core.posts.get(slot).is_some_and(Option::is_some);
        let unneeded = cores.map(|cores| cores.keep(wanted, has_process));
        drop(core);
        // Before the next turn, which may need them.
        self.call(unneeded.into_iter().flatten().map(Foreign::Lease).collect());
        drop(turn);
        after.run(self);
        if target == workers { Ok(()) } else { self.is_open() }
    }

    pub(crate) fn quiesce(&self) -> Result<(), PoolError> {
        self.is_open()?;
        self.step(Event::Quiesce, Facts::Nothing);
        let mut core = self.lock();
        while core.machine.is_losing_workers() && core.machine.is_open() {
            core = self.wait_for_progress(core);
        }
        Ok(())
    }

    fn is_open(&self) -> Result<(), PoolError> {
        if self.is_forked() {
            return Err(PoolError::Forked);
        }
        let core = self.lock();
        match core.machine.broken_reason() {
            Some(reason) => Err(PoolError::Broken { reason: reason.to_string() }),
            None if core.machine.is_open() => Ok(()),
            None => Err(PoolError::Closed),
        }
    }

    /// Begins the end and does not wait for it; the report tells how far it has come.
    pub(super) fn begin_shutdown(
        &self,
        mode: Shutdown,
        timeout: Option<Duration>,
    ) -> ShutdownReport {
        self.lock().shutdown_began.get_or_insert_with(Instant::now);
        self.step(Event::Shutdown { mode, timeout }, Facts::Nothing);
        self.lock().report()
    }

    /// Brings the pool to its end and waits for it.
    pub(super) fn shutdown(
        &self,
        mode: Shutdown,
        timeout: Option<Duration>,
    ) -> Result<ShutdownReport, PoolError> {
        self.begin_shutdown(mode, timeout);
        let mut core = self.lock();
        while !core.machine.has_ended() {
            core = self.wait_for_progress(core);
        }
        let left_behind = self.left_behind();
        if !left_behind.is_empty() {
            return Err(PoolError::LeftBehind { pids: left_behind });
        }
        match core.machine.broken_reason() {
            Some(reason) => Err(PoolError::Broken { reason: reason.to_string() }),
            None => Ok(core.report()),
        }
    }

    fn wait_for_progress<'a>(&self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        core.waiting_for_progress += 1;
        let mut core = self.progress.wait(core).unwrap_or_else(PoisonError::into_inner);
        core.waiting_for_progress -= 1;
        core
    }
}

impl Core {
    fn report(&mut self) -> ShutdownReport {
        let tally = self.machine.tally();
        let so_far = self.shutdown_began.map_or(Duration::ZERO, |began| began.elapsed());
        let elapsed =
            if self.machine.has_ended() { *self.elapsed.get_or_insert(so_far) } else { so_far };
        ShutdownReport {
            finished: tally.finished,
            cancelled: tally.cancelled,
            failed: tally.failed,
            killed: tally.killed,
            workers_stopped: tally.workers_stopped,
            workers_killed: tally.workers_killed,
            elapsed,
        }
    }
}
