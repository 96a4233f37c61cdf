//! Data that a caller attaches to a job.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Data of any type, or none. All of it is equal, because it is no part of what a job does.
#[derive(Clone, Default)]
pub(super) struct AnyData(Option<Arc<dyn Any + Send + Sync>>);

impl AnyData {
    pub(super) fn new<T: Any + Send + Sync>(data: T) -> Self {
        Self(Some(Arc::new(data)))
    }

    pub(super) fn get<T: Any>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }
}

impl PartialEq for AnyData {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for AnyData {}

impl fmt::Debug for AnyData {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_some() { "Some(..)" } else { "None" })
    }
}
