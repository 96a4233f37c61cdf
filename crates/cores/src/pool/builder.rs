//! The settings of a pool of cores.

use std::path::PathBuf;
use std::sync::Arc;

use brigade_sys::private_folder::PrivateFolder;

use super::CorePool;
use super::shared::Shared;
use super::watcher::Watcher;
use crate::cpu_set::CpuSet;
use crate::error::BuildError;
use crate::lock_file::LockFile;
use crate::topology::Topology;

/// Builds a [`CorePool`].
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct CorePoolBuilder {
    topology: Option<Topology>,
    cpus: Option<CpuSet>,
    avoided: CpuSet,
    include_isolated: bool,
    lock_folder: Option<PathBuf>,
}

brigade_sys::setters! {
    impl CorePoolBuilder;

    /// Sets the topology, such as a recorded one or a part of this machine. By default this machine
    /// is discovered.
    pub fn topology(self, topology: Topology) { self.topology = Some(topology) }

    /// Leases only these cpus, even if they are isolated.
    pub fn cpus(self, cpus: CpuSet) { self.cpus = Some(cpus) }

    /// Leases these cpus only to requests that do not fit on the others at that time. They may be
    /// cpus that other programs use.
    pub fn avoid(self, cpus: CpuSet) { self.avoided = cpus }

    /// Leases isolated cpus too if `include` is `true`. By default they are left out.
    pub fn include_isolated(self, include: bool) { self.include_isolated = include }

    /// Makes the pool exclusive: it never leases a core that an exclusive pool has leased, of this
    /// process or of another process of this user.
    ///
    /// Waiting requests are served when other processes return cores or die, in no particular order
    /// between processes. The folder is `$XDG_RUNTIME_DIR/brigade`, or `/tmp/brigade-UID` if that
    /// variable names no folder of this user. Processes exclude each other only if they use the
    /// same folder.
    pub fn exclusive(self) { self.lock_folder = Some(PrivateFolder::default_path()) }

    /// Makes the pool [exclusive](Self::exclusive) among those that use this folder. It is created
    /// if it is missing. It must belong to this user and be closed to all others (mode 0700).
    pub fn exclusive_in(self, folder: impl Into<PathBuf>) { self.lock_folder = Some(folder.into()) }
}

impl CorePoolBuilder {
    /// Builds the pool.
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
        let shared = Arc::new(Shared::new(topology.restricted_to(&cpus), &self.avoided, lock_file));
        let watcher = Watcher::start(&shared).map_err(refused)?.map(Arc::new);
        Ok(CorePool { shared, _watcher: watcher })
    }
}
