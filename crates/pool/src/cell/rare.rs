//! The attributes that few tasks have.

use std::sync::Arc;

use crate::chunk::ChunkProgress;
use crate::deadlines::TaskDeadlines;
use crate::function_ref::NamedFunction;
use crate::run_record::RunRecord;
use crate::sync::Mutex;

/// Attributes of a task, which has none of them as a rule.
#[derive(Debug, Default)]
pub(super) struct Rare {
    /// The function, if it goes by name.
    pub(super) function: Option<Arc<NamedFunction>>,
    pub(super) label: Option<Arc<str>>,
    pub(super) deadlines: Option<Box<TaskDeadlines>>,
    /// `None` for a task whose runs nobody reports.
    pub(super) record: Option<Box<RunRecord>>,
    /// Outcomes of the items of a chunk; taken by the map. Locked under the cell's lock at times,
    /// never the other way round.
    pub(super) chunk: Mutex<Option<Box<ChunkProgress>>>,
}

impl Rare {
    /// Returns `true` if there is nothing but, perhaps, a chunk.
    pub(super) fn is_empty(&self) -> bool {
        let Self { function, label, deadlines, record, chunk: _ } = self;
        function.is_none() && label.is_none() && deadlines.is_none() && record.is_none()
    }
}
