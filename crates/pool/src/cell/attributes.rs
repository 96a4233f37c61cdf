//! The attributes that tasks share, or that few of them have.

use std::fmt;
use std::sync::Arc;

use crate::chunk::{ChunkProgress, RetriedFor};
use crate::deadlines::TaskDeadlines;
use crate::drive::Shared;
use crate::function_ref::NamedFunction;
use crate::run_record::RunRecord;
use crate::sync::Mutex;

/// The pool of a task, and what is rare about it.
///
/// Tasks with nothing rare share those of their pool, so that a cell needs one pointer for both.
#[derive(Default)]
pub(crate) struct Attributes {
    /// Set for tasks with a handle, which needs it. Those of maps and streams have none.
    pool: Option<Arc<Shared>>,
    rare: Option<Rare>,
}

/// Attributes of a task, which has none of them as a rule.
#[derive(Debug, Default)]
pub(super) struct Rare {
    /// The function, if it goes by name.
    pub(super) function: Option<Arc<NamedFunction>>,
    pub(super) label: Option<Arc<str>>,
    pub(super) deadlines: Option<Box<TaskDeadlines>>,
    pub(super) retried_for: RetriedFor,
    /// `None` for a task whose runs nobody reports.
    pub(super) record: Option<Box<RunRecord>>,
    /// Outcomes of the items of a chunk; taken by the map. Locked under the cell's lock at times,
    /// never the other way round.
    pub(super) chunk: Option<Mutex<Option<Box<ChunkProgress>>>>,
}

impl Attributes {
    /// Returns those that all tasks of a pool share which have nothing rare.
    ///
    /// The pool's state must not own them, because they own it.
    pub(crate) fn ordinary(pool: &Arc<Shared>) -> Arc<Self> {
        Arc::new(Self { pool: Some(Arc::clone(pool)), rare: None })
    }

    /// Returns those of a task of the same pool with something rare.
    pub(super) fn with(&self, rare: Rare) -> Arc<Self> {
        Arc::new(Self { pool: self.pool.clone(), rare: Some(rare) })
    }

    pub(super) fn without_pool(rare: Rare) -> Arc<Self> {
        Arc::new(Self { pool: None, rare: Some(rare) })
    }

    #[inline]
    pub(super) fn pool(&self) -> Option<&Arc<Shared>> {
        self.pool.as_ref()
    }

    #[inline]
    pub(super) fn rare(&self) -> Option<&Rare> {
        self.rare.as_ref()
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Attributes").field("rare", &self.rare).finish_non_exhaustive()
    }
}
