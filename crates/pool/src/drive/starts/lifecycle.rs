//! Calls that change the number of workers, including the shutdown. They wait for the pool's
//! threads.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use brigade_scheduler::{Event, Shutdown, ShutdownReport};
use brigade_sys::clock::now;
use brigade_sys::sync::MutexGuard;

use crate::drive::deferred::Deferred;
use crate::drive::outcome::EventData;
use crate::drive::shared::{Core, Shared};
use crate::drive::user_code::queue::UserCode;
use crate::error::PoolError;

impl Shared {
    pub(crate) fn warm_up(&self) -> Result<(), PoolError> {
        self.check_open()?;
        self.step(Event::WarmUp, EventData::Nothing);
        let mut core = self.lock();
        loop {
            core.check_open()?;
            if let Some(reason) = core.scheduler.not_warmed() {
                return Err(PoolError::Start { reason: reason.to_string() });
            }
            if !core.scheduler.is_warming() {
                return Ok(());
            }
            core = self.wait_for_progress(core);
        }
    }

    pub(crate) fn resize(&self, workers: usize) -> Result<(), PoolError> {
        // Resizes take turns, because cores are reserved before the scheduler decides, and the last
        // decision has to hold for both.
        let turn = self.resizing.lock();
        self.check_open()?;
        let cores = self.config.cores.as_ref();
        if let Some(cores) = cores {
            let spare = self.config.scheduler.spare_workers;
            cores.reserve(workers.saturating_add(spare), "resize")?;
        }
        let mut deferred = Deferred::default();
        let mut core = self.lock();
        core.handle(now(), Event::Resize { workers }, EventData::Nothing, self, &mut deferred);
        // A pool that was closed in the meantime keeps its size.
        let at_work = core.scheduler.workers_at_work();
        self.target.store(at_work, Ordering::Relaxed);
        let wanted = if core.scheduler.has_ended() { 0 } else { core.scheduler.target() };
        // Also one whose death was reported and which is not gone yet.
        let has_process =
            |slot: usize| u32::try_from(slot).is_ok_and(|slot| core.scheduler.has_process(slot));
        let unneeded = cores.map(|cores| cores.keep(wanted, has_process));
        drop(core);
        // The next resize may need these cores, so they are returned before it gets its turn.
        self.call(unneeded.into_iter().flatten().map(UserCode::Lease).collect());
        drop(turn);
        deferred.run(self);
        if at_work == workers { Ok(()) } else { self.check_open() }
    }

    pub(crate) fn quiesce(&self) -> Result<(), PoolError> {
        self.check_open()?;
        self.step(Event::Quiesce, EventData::Nothing);
        let mut core = self.lock();
        while core.scheduler.is_losing_workers() && core.scheduler.is_open() {
            core = self.wait_for_progress(core);
        }
        core.check_open()
    }

    fn check_open(&self) -> Result<(), PoolError> {
        if self.is_forked() {
            return Err(PoolError::Forked);
        }
        self.lock().check_open()
    }

    /// Begins the shutdown without waiting for it; the report gives the progress so far.
    pub(in crate::drive) fn begin_shutdown(
        &self,
        mode: Shutdown,
        timeout: Option<Duration>,
    ) -> ShutdownReport {
        self.lock().shutdown_began.get_or_insert_with(Instant::now);
        self.step(Event::Shutdown { mode, timeout }, EventData::Nothing);
        let core = self.lock();
        core.stop_emitting();
        core.report()
    }

    /// Ends the pool and waits for the end.
    pub(in crate::drive) fn shutdown(
        &self,
        mode: Shutdown,
        timeout: Option<Duration>,
    ) -> Result<ShutdownReport, PoolError> {
        self.begin_shutdown(mode, timeout);
        let mut core = self.lock();
        while !core.scheduler.has_ended() {
            core = self.wait_for_progress(core);
        }
        let pids = self.left_behind.lock().clone();
        if !pids.is_empty() {
            return Err(PoolError::LeftBehind { pids });
        }
        core.check_not_broken()?;
        Ok(core.report())
    }

    fn wait_for_progress<'a>(&self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        core.waiting_for_progress += 1;
        let mut core = self.progress.wait(core);
        core.waiting_for_progress -= 1;
        core
    }
}

impl Core {
    fn check_not_broken(&self) -> Result<(), PoolError> {
        let reason = self.scheduler.broken_reason();
        reason.map_or(Ok(()), |reason| Err(PoolError::Broken { reason: reason.to_string() }))
    }

    fn check_open(&self) -> Result<(), PoolError> {
        self.check_not_broken()?;
        if self.scheduler.is_open() { Ok(()) } else { Err(PoolError::Closed) }
    }

    fn report(&self) -> ShutdownReport {
        let mut report = self.scheduler.report();
        let so_far = || self.shutdown_began.map(|began| began.elapsed());
        report.elapsed = self.elapsed.or_else(so_far).unwrap_or_default();
        report
    }
}
