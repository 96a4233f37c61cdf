//! How a pool of cores is made.

use std::path::PathBuf;
use std::sync::Arc;

use super::CorePool;
use super::shared::Shared;
use super::watcher::Watcher;
use crate::cpu_set::CpuSet;
use crate::error::BuildError;
use crate::lock_file::{self, LockFile};
use crate::topology::Topology;

/// Makes a [`CorePool`].
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct CorePoolBuilder {
    topology: Option<Topology>,
    cpus: Option<CpuSet>,
    include_isolated: bool,
    lock_folder: Option<PathBuf>,
}

impl CorePoolBuilder {
    /// Another machine than what is discovered here: a recorded one, or a part of this.
    pub fn topology(self, topology: Topology) -> Self {
        Self { topology: Some(topology), ..self }
    }

    /// Only these cpus, also if they are isolated.
    pub fn cpus(self, cpus: CpuSet) -> Self {
        Self { cpus: Some(cpus), ..self }
    }

    /// Whether to lease isolated cpus too, which are left out otherwise.
    pub fn include_isolated(self, include: bool) -> Self {
        Self { include_isolated: include, ..self }
    }

    /// Never leases a core that an exclusive pool of another process of this user has leased (or one of this process).
    ///
    /// Those who wait are served as other processes give cores back, or die; but between processes nobody is first. The folder is
    /// `$XDG_RUNTIME_DIR/brigade`, or `/tmp/brigade-UID` without that variable: processes agree only if they see the same one.
    pub fn exclusive(self) -> Self {
        let folder = lock_file::usual_folder();
        self.exclusive_in(folder)
    }

    /// The same among the pools that are given this folder. It is made if it is missing; it must belong to this user and be closed to
    /// all others (mode 0700).
    pub fn exclusive_in(self, folder: impl Into<PathBuf>) -> Self {
        Self { lock_folder: Some(folder.into()), ..self }
    }

    /// The pool.
    pub fn build(self) -> Result<CorePool, BuildError> {
        let topology = self.topology.map_or_else(Topology::discover, Ok)?;
        let usable = topology.cpus();
        let cpus = match self.cpus {
            Some(cpus) => {
                let missing = cpus.difference(usable);
                if !missing.is_empty() {
                    return Err(BuildError::NotUsable { missing, usable: usable.clone() });
                }
                cpus
            }
            None if self.include_isolated => usable.clone(),
            None => usable.difference(topology.isolated()),
        };
        if cpus.is_empty() {
            let isolated = !usable.is_empty() && usable.is_subset(topology.isolated());
            return Err(BuildError::Empty { isolated });
        }
        let folder = self.lock_folder;
        let refused = |source| {
            let folder = folder.clone().unwrap_or_default();
            BuildError::LockFile { folder, source }
        };
        let lock_file = folder.as_deref().map(LockFile::open).transpose().map_err(refused)?;
        let shared = Arc::new(Shared::new(topology.restricted_to(&cpus), lock_file));
        let watcher = Watcher::start(&shared).map_err(refused)?.map(Arc::new);
        Ok(CorePool { shared, _watcher: watcher })
    }
}
