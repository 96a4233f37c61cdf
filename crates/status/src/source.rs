//! The subject of a live view.

use std::borrow::Cow;

use brigade_metrics::PoolSnapshot;
use serde::{Deserialize, Serialize};

/// The subject of a live view.
///
/// The server's thread calls it for each request, and once a second while somebody follows the
/// events. It should return soon: meanwhile, nobody else is served.
pub trait Source: Send + 'static {
    /// Returns the present state, or `None` if the subject does not exist anymore.
    fn snapshot(&self) -> Option<PoolSnapshot>;

    /// Returns where the running task of a worker is now, in lines of text; `None` if it runs none,
    /// or the subject does not know. May block for a tenth of a second.
    fn stack(&self, worker: u32) -> Option<String> {
        let _ = worker;
        None
    }

    /// Returns the words for the subject. The default is for pools.
    fn terms(&self) -> Terms {
        Terms::default()
    }
}

/// The words for a subject, in the singular.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Terms {
    /// A unit of work.
    pub task: Cow<'static, str>,
    /// A place that runs one task at a time.
    pub worker: Cow<'static, str>,
}

impl Terms {
    /// A runner has slots, which run jobs.
    pub const RUNNER: Self = Self { task: Cow::Borrowed("job"), worker: Cow::Borrowed("slot") };
}

/// A pool has workers, which run tasks.
impl Default for Terms {
    fn default() -> Self {
        Self { task: "task".into(), worker: "worker".into() }
    }
}
