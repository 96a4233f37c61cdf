//! The attributes that few tasks have.

use std::sync::Arc;

use crate::deadlines::TaskDeadlines;
use crate::function_ref::NamedFunction;
use crate::run_record::RunRecord;

/// Attributes of a task, which has none of them as a rule.
#[derive(Debug, Default)]
pub(super) struct Rare {
    /// The function, if it goes by name.
    pub(super) function: Option<Arc<NamedFunction>>,
    pub(super) label: Option<Arc<str>>,
    pub(super) deadlines: Option<Box<TaskDeadlines>>,
    /// `None` for a task whose runs nobody reports.
    pub(super) record: Option<Box<RunRecord>>,
}

impl Rare {
    pub(super) fn is_empty(&self) -> bool {
        let Self { function, label, deadlines, record } = self;
        function.is_none() && label.is_none() && deadlines.is_none() && record.is_none()
    }
}
