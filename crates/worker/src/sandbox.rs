//! The sandbox that a worker enters before its first task.

use std::os::fd::OwnedFd;

use brigade_sys::confine::{self, Filter, Namespaces, Restrictions, View};
use brigade_sys::resource_limit::Limited;
use brigade_sys::sibling::single_thread;
use brigade_wire::handshake::{Confinement, Isolation, Visible};

/// A sandbox of the host's greeting.
#[derive(Debug)]
pub(crate) struct Sandbox {
    restrictions: Restrictions,
    pub(crate) before_initializer: bool,
}

impl Sandbox {
    pub(crate) fn new(confinement: &Confinement, files: Option<OwnedFd>) -> Self {
        let filters = confinement.filters.iter();
        let filters = filters.map(|words| Filter::from_words(words).of_this_process()).collect();
        let namespaces = confinement.isolation.as_ref().map(namespaces);
        let Confinement { capabilities, lowers_limits, .. } = *confinement;
        let limit = |(it, limit): &(u8, u64)| Some((Limited::from_number(*it)?, *limit));
        let limits = confinement.limits.iter().filter_map(limit).collect();
        Self {
            restrictions: Restrictions {
                namespaces,
                capabilities,
                files,
                limits,
                lowers_limits,
                filters,
            },
            before_initializer: confinement.before_initializer,
        }
    }

    /// Enters it, for good. The error can follow "the worker could not be started: ".
    pub(crate) fn enter(self) -> Result<(), String> {
        single_thread().map_err(|reason| {
            format!(
                "{reason}, and a sandbox reaches only the first; end those of the initializer, \
                 start them in the first task, or use `Sandbox::before_initializer`; an allocator \
                 must have none"
            )
        })?;
        self.restrictions.apply().map_err(|(what, error)| format!("it cannot {what}: {error}"))
    }
}

fn namespaces(isolation: &Isolation) -> Namespaces {
    let visible = |it: &Visible| confine::Visible {
        path: it.path.clone(),
        links: it.links.clone(),
        is_folder: it.is_folder,
        is_writable: it.is_writable,
    };
    let view = isolation.files.as_ref().map(|files| View::new(files.iter().map(visible)));
    Namespaces { network: isolation.network, view }
}
