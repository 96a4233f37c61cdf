//! The settings of a task, or of the items of a map.

use std::sync::Arc;

use crate::message::RunSettings;
use crate::names::Priority;
use crate::requirements::Requirements;

/// Settings of a task.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    pub(super) label: Option<Arc<str>>,
    pub(super) run: RunSettings,
    pub(super) priority: Priority,
    pub(super) requirements: Requirements,
    pub(super) announces_start: bool,
    pub(super) accepts_any_input: bool,
    /// A hash of the types of the function.
    pub(super) types: u64,
}
