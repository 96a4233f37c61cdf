//! The files that are read to unwind a stack and to name its calls.

use std::path::PathBuf;

use crate::mapping::{self, Mapping};

/// The files that may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// Those that this process or the worker has loaded.
    OfWorker,
    /// Those that this process has loaded as code. The worker, which is in a sandbox, may have
    /// written any other, and any name in its record.
    OfThisProcess,
}

/// The modules of this process, and the rule for others.
pub(crate) struct Modules {
    own: Vec<Mapping>,
    files: Files,
}

/// A file of a worker.
pub(crate) enum Module {
    /// This process runs its code as well. This is its own mapping of it.
    Own(Mapping),
    /// It may be anything.
    Foreign(PathBuf),
}

impl Modules {
    pub(crate) fn new(files: Files) -> Self {
        let own = mapping::own().into_iter().filter(|it| it.is_executable).collect();
        Self { own, files }
    }

    /// Returns the file of a mapping, if it may be read.
    pub(crate) fn find(&self, mapping: &Mapping) -> Option<Module> {
        let own = self.own.iter().find(|own| own.is_same_file(mapping));
        let is_foreign = self.files == Files::OfWorker && mapping.path.starts_with('/');
        own.map(|own| Module::Own(own.clone()))
            .or_else(|| is_foreign.then(|| Module::Foreign(mapping.file())))
    }
}

impl Module {
    /// Returns the path through which the file can be opened.
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::Own(mapping) => mapping.file(),
            Self::Foreign(path) => path.clone(),
        }
    }
}
