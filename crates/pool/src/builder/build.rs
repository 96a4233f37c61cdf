//! Builds the pool, where one can be built.

use brigade_sys::descriptors;
use brigade_sys::executable::Origin;

use super::PoolBuilder;
use crate::Pool;
use crate::error::PoolError;

/// Deepest nesting of pools built inside tasks of other pools. Anything deeper is an endless
/// recursion of processes.
const MAX_NESTING: u32 = 10;

impl PoolBuilder {
    /// Checks the settings and builds the pool. Workers start with the first tasks.
    ///
    /// # Errors
    /// [`PoolError::Configuration`] names an invalid setting; [`PoolError::NotInitialized`] if
    /// `init` has not run in this process; [`PoolError::NestedTooDeep`] if pools are built inside
    /// tasks of other pools, ten levels deep; [`PoolError::System`] if a thread cannot be started,
    /// or `/proc` is not mounted; [`PoolError::Unsupported`] on other systems than Linux.
    pub fn build(self) -> Result<Pool, PoolError> {
        if self.has_threads()? {
            check_nesting()?;
            return Pool::start(self.with_threads()?.check()?);
        }
        if !cfg!(target_os = "linux") {
            return Err(PoolError::Unsupported { system: std::env::consts::OS });
        }
        if brigade_worker::started_as_worker_without_init() {
            return Err(PoolError::WorkerWithoutInit);
        }
        if self.config.supervisor.command.is_none() && !brigade_worker::is_initialized() {
            return Err(PoolError::NotInitialized);
        }
        check_nesting()?;
        descriptors::fill_streams();
        self.check_starter()?;
        Pool::start(self.check()?)
    }

    /// Checks that workers can be started: a start that fails says less about the cause.
    fn check_starter(&self) -> Result<(), PoolError> {
        let origin = Origin::of_this_program();
        let origin = origin
            .map_err(PoolError::system("use /proc: mount it with `mount -t proc proc /proc`"))?;
        if self.config.supervisor.command.is_some() || !origin.is_lost() {
            return Ok(());
        }
        let problem = "the dynamic loader was started with this program, and cannot start workers \
                       with it, because its file was deleted or replaced: start the program \
                       again, without the loader if its file is to be replaced, or give its path \
                       here";
        Err(PoolError::Configuration { field: "worker_command", problem: problem.into() })
    }
}

/// Returns an error if pools are built inside tasks of other pools, too deep.
fn check_nesting() -> Result<(), PoolError> {
    let (depth, limit) = (brigade_worker::context::depth().unwrap_or(0), MAX_NESTING);
    if depth < limit { Ok(()) } else { Err(PoolError::NestedTooDeep { depth, limit }) }
}
