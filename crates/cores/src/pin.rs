//! Pins threads and processes to cpus.
//!
//! The kernel silently drops cpus that are offline or outside the cpuset, so every mask is read
//! back.

use brigade_sys::affinity;

use crate::cpu_set::CpuSet;
use crate::error::PinError;
use crate::lease::CoreLease;

/// The result of pinning.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the kernel may have allowed less than was asked for"]
#[non_exhaustive]
pub struct Pinned {
    /// The requested cpus.
    pub requested: CpuSet,
    /// The cpus on which the kernel lets the thread run.
    pub effective: CpuSet,
}

impl Pinned {
    /// Returns `true` if the kernel allowed all requested cpus.
    pub fn is_exact(&self) -> bool {
        self.requested == self.effective
    }
}

impl CoreLease {
    /// Pins the calling thread to the cores of this lease, like [`CpuSet::pin_current_thread`].
    pub fn pin_current_thread(&self) -> Result<Pinned, PinError> {
        self.cores().pin_current_thread()
    }

    /// Runs `f` with the calling thread pinned to the cores of this lease, like
    /// [`CpuSet::run_pinned`].
    pub fn run_pinned<T>(&self, f: impl FnOnce(&Pinned) -> T) -> Result<T, PinError> {
        self.cores().run_pinned(f)
    }
}

impl CpuSet {
    /// Returns the cpus on which the calling thread may run.
    pub fn of_current_thread() -> Result<Self, PinError> {
        affinity::current().map(Self::from_words).map_err(PinError::GetAffinity)
    }

    /// Returns the cpus on which a thread may run; the main thread if `tid` is a process id.
    pub fn of_thread(tid: u32) -> Result<Self, PinError> {
        affinity::of_thread(tid).map(Self::from_words).map_err(PinError::GetAffinity)
    }

    /// Pins the calling thread, and the threads and processes that it starts from now on, to these
    /// cpus. Running threads are not affected.
    ///
    /// Memory belongs to the NUMA node of the thread that first writes to it: pin first, then
    /// allocate and fill.
    pub fn pin_current_thread(&self) -> Result<Pinned, PinError> {
        affinity::set_current(self.words()).map_err(|source| self.refused(source))?;
        Ok(Pinned { requested: self.clone(), effective: Self::of_current_thread()? })
    }

    /// Runs `f` with the calling thread pinned to these cpus, and restores the thread's mask
    /// afterwards, even if `f` panics.
    ///
    /// A process or thread that `f` starts is pinned before its first instruction. Use this to
    /// start a command pinned: it needs no `pre_exec`, which would make the standard library fork
    /// instead of using the much faster `posix_spawn`.
    ///
    /// ```no_run
    /// use std::process::Command;
    ///
    /// use brigade_cores::{CorePool, CoreRequest};
    ///
    /// let pool = CorePool::new()?;
    /// let lease = pool.reserve(CoreRequest::new(2))?;
    /// let child = lease.run_pinned(|_| Command::new("make").arg("-j2").spawn())??;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_pinned<T>(&self, f: impl FnOnce(&Pinned) -> T) -> Result<T, PinError> {
        affinity::restricted(self.words(), |effective| {
            f(&Pinned { requested: self.clone(), effective: Self::from_words(effective.to_vec()) })
        })
        .map_err(|source| self.refused(source))
    }

    fn refused(&self, source: std::io::Error) -> PinError {
        PinError::SetAffinity { cpus: self.clone(), source }
    }
}
