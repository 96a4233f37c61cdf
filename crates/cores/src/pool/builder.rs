//! How a pool of cores is made.

use super::CorePool;
use crate::cpu_set::CpuSet;
use crate::error::BuildError;
use crate::topology::Topology;

/// Makes a [`CorePool`].
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct CorePoolBuilder {
    topology: Option<Topology>,
    cpus: Option<CpuSet>,
    include_isolated: bool,
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
        Ok(CorePool::from_topology(topology.restricted_to(&cpus)))
    }
}
