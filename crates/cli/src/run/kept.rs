//! The properties of jobs that are needed until they are over, shared by the client and the output
//! thread.

use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::Arc;

use brigade::runner::ResultFiles;

use crate::arguments::Run;
use crate::descriptors::most_held;
use crate::printer::{ReorderBuffer, Tag};
use crate::screen::SupplyCounts;
use brigade_sys::sync::{Mutex, MutexGuard};

/// State shared by the client and the output thread.
#[derive(Debug, Clone)]
pub(super) struct Shared(Arc<Mutex<State>>);

#[derive(Debug)]
pub(super) struct State {
    /// The properties of jobs that are not over, if they will be needed.
    pub(super) kept: HashMap<u64, Kept>,
    pub(super) keeps_arguments: bool,
    pub(super) reorder: Option<ReorderBuffer>,
    pub(super) supply: SupplyCounts,
    /// `true` if the client holds jobs back until held outputs are printed.
    pub(super) is_held: bool,
}

/// The properties of a job that are needed until it is over.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) arguments: Vec<OsString>,
    pub(super) tag: Tag,
    /// The files for its results.
    pub(super) files: Option<ResultFiles>,
    /// The slot of its last attempt.
    pub(super) slot: usize,
}

impl Kept {
    /// Returns the prefix of each line of its output.
    pub(super) fn line_tag(&self) -> Vec<u8> {
        self.tag.on_slot(self.slot)
    }
}

impl Shared {
    pub(super) fn new(options: &Run, keeps_arguments: bool) -> Self {
        Self(Arc::new(Mutex::new(State {
            kept: HashMap::new(),
            keeps_arguments,
            reorder: options.keep_order.then(|| ReorderBuffer::new(most_held())),
            supply: SupplyCounts::default(),
            is_held: false,
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Notes the slot of a job's attempt.
    pub(super) fn started(&self, number: u64, slot: usize) {
        if let Some(kept) = self.lock().kept.get_mut(&number) {
            kept.slot = slot;
        }
    }

    /// Returns the prefix of each line of a running job's output.
    pub(super) fn line_tag(&self, number: u64) -> Vec<u8> {
        self.lock().kept.get(&number).map(Kept::line_tag).unwrap_or_default()
    }

    /// Removes and returns what was kept of a job that is over.
    pub(super) fn take(&self, number: u64) -> Kept {
        self.lock().kept.remove(&number).unwrap_or_default()
    }
}
