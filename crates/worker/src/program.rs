//! The description of a worker program that the host receives in the handshake.

use brigade_sys::executable::build_identity;
use brigade_wire::handshake::{LinkKind, WorkerProgram};
use brigade_wire::link::connect::WorkerConnector;

use crate::error::CannotStart;
use crate::functions::Named;

/// The links that a worker program can use apart from rings.
pub type Connectors = &'static [&'static dyn WorkerConnector];

/// The functions and the version of a program that is started as a worker.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) named: Named,
    /// `true` if it runs tasks by name for hosts of other builds.
    pub(crate) server: bool,
    pub(crate) version: Option<String>,
    pub(crate) connectors: Connectors,
}

impl Program {
    /// Returns what the host has to know of it.
    pub(crate) fn describe(&self) -> WorkerProgram {
        let identity = *build_identity().as_bytes();
        WorkerProgram { identity, has_names: self.server, version: self.version.clone() }
    }

    /// Returns the connector for a link that is opened in the handshake.
    pub(crate) fn connector(
        &self,
        kind: LinkKind,
    ) -> Result<&'static dyn WorkerConnector, CannotStart> {
        let found = self.connectors.iter().find(|connector| connector.kind() == kind);
        found.copied().ok_or(CannotStart::NoConnector(kind))
    }
}
