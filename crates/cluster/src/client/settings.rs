//! The settings of a task, or of the items of a map.

use std::sync::Arc;
use std::time::Duration;

use brigade_task::Retry;

use crate::message::TaskHead;
use crate::names::Priority;
use crate::requirements::Requirements;

/// Settings of a task.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) label: Option<Arc<str>>,
    pub(super) deadline: Option<Duration>,
    pub(super) soft_deadline: Option<Duration>,
    pub(super) retry: Retry,
    pub(super) retries_panics: bool,
    pub(super) retries_errors: bool,
    pub(super) max_deaths: u32,
    pub(super) priority: Priority,
    pub(super) requirements: Requirements,
    pub(super) announces_start: bool,
    /// A hash of the types of the function.
    pub(super) types: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            label: None,
            deadline: None,
            soft_deadline: None,
            retry: Retry::of(0),
            retries_panics: false,
            retries_errors: false,
            max_deaths: TaskHead::MAX_DEATHS,
            priority: Priority::default(),
            requirements: Requirements::default(),
            announces_start: false,
            types: 0,
        }
    }
}
