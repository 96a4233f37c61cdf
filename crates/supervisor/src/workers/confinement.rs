//! A sandbox in the form of the greeting.

use brigade_sandbox::{Limits, Prepared};
use brigade_wire::handshake::{Confinement, Isolation, Visible};

/// Returns the sandbox for the greeting, without the descriptor of its rules for files.
pub(crate) fn confinement(sandbox: &Prepared, limits: &Limits) -> Confinement {
    let limits = limits.of_process().into_iter();
    Confinement {
        isolation: sandbox.isolation.as_ref().map(isolation),
        files: sandbox.files.is_some(),
        capabilities: sandbox.capabilities,
        limits: limits.map(|(_, limited, limit)| (limited as u8, limit)).collect(),
        lowers_limits: sandbox.lowers_limits,
        filters: sandbox.filters.clone(),
        before_initializer: sandbox.before_initializer,
    }
}

fn isolation(isolation: &brigade_sandbox::Isolation) -> Isolation {
    let visible = |it: &brigade_sys::confine::Visible| {
        let (path, links) = (it.path.clone(), it.links.clone());
        Visible { path, links, is_folder: it.is_folder, is_writable: it.is_writable }
    };
    let files = isolation.files.as_ref().map(|files| files.iter().map(visible).collect());
    Isolation { network: isolation.network, files }
}
