//! The sandbox that a worker enters before its first task.

use std::os::fd::OwnedFd;

use brigade_sys::confine::{self, Filter, Namespaces, Restrictions, Step, View};
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
        let capabilities = confinement.capabilities;
        Self {
            restrictions: Restrictions { namespaces, capabilities, files, filters },
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
        self.restrictions.apply().map_err(|(step, error)| {
            let what = match step {
                Step::NoNewPrivileges => "give up new privileges",
                Step::Namespaces => "make namespaces of its own",
                Step::Capabilities => "give up its capabilities",
                Step::Files => "close files and networks (Landlock)",
                Step::Calls => "close system calls (seccomp)",
            };
            format!("it cannot {what}: {error}")
        })
    }
}

fn namespaces(isolation: &Isolation) -> Namespaces {
    let visible = |it: &Visible| confine::Visible {
        path: it.path.clone(),
        alias: it.alias.clone(),
        is_folder: it.is_folder,
        is_writable: it.is_writable,
    };
    let view = isolation.files.as_ref().map(|files| View::new(files.iter().map(visible)));
    Namespaces { network: isolation.network, view }
}
