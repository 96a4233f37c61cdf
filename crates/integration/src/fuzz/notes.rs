//! Records which process began which task. Each note is an empty file whose name has both, because
//! nothing else that a worker says can be believed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;

/// The variable with the folder's path. It also marks every process that the pool starts.
pub(super) const FOLDER: &str = "BRIGADE_FUZZ_NOTES";

/// Notes that the current task begins in this process. A worker that was scribbled over may fail
/// to.
pub(super) fn note(kind: Kind, number: u64) {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let name = format!("{}-{number}-{}", kind.letter(), std::process::id());
        let _ = File::create(Path::new(&folder).join(name));
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Guilty,
    Innocent,
}

impl Kind {
    fn letter(self) -> char {
        match self {
            Self::Guilty => 'g',
            Self::Innocent => 'i',
        }
    }
}

/// All notes of a round.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// The workers in which guilty tasks have begun.
    pub(super) victims: BTreeSet<u32>,
    innocent: BTreeMap<u64, BTreeSet<u32>>,
}

impl Notes {
    pub(super) fn read(folder: &Path) -> Self {
        let mut notes = Self::default();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let mut parts = name.split('-');
            let (kind, number, pid) = (parts.next(), parts.next(), parts.next());
            let number = number.and_then(|number| number.parse().ok());
            let Some((number, pid)) = number.zip(pid.and_then(|pid| pid.parse().ok())) else {
                continue;
            };
            match kind {
                Some("g") => {
                    notes.victims.insert(pid);
                }
                _ => {
                    notes.innocent.entry(number).or_default().insert(pid);
                }
            }
        }
        notes
    }

    /// Returns a worker that nobody scribbled over and that began this innocent task.
    pub(super) fn sound_worker(&self, number: u64) -> Option<u32> {
        self.innocent.get(&number)?.difference(&self.victims).next().copied()
    }
}
