//! The resources that tasks need, by the names that the pool declared.

use brigade_base::{Inventory, Needs};

use crate::error::SubmitErrorKind;

/// The amounts that a task needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskNeeds {
    named: Vec<(String, u64)>,
    /// The same for the scheduler, or the reason why no worker will ever run the task.
    resolved: Option<Result<Needs, String>>,
}

impl TaskNeeds {
    /// Adds an amount.
    pub(crate) fn add(&mut self, declared: &Inventory, resource: String, amount: u64) {
        self.named.push((resource, amount));
        let named = self.named.iter().map(|(name, amount)| (name.as_str(), *amount));
        let resolved = declared.resolve(named).map_err(|error| error.to_string());
        self.resolved = Some(resolved).filter(|it| !it.as_ref().is_ok_and(Needs::are_none));
    }

    /// Returns `true` if nothing is needed.
    #[inline]
    pub(crate) fn are_none(&self) -> bool {
        self.resolved.is_none()
    }

    /// Returns an error if no worker will ever run the task.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), SubmitErrorKind> {
        match &self.resolved {
            Some(Err(message)) => Err(SubmitErrorKind::Needs { message: message.clone() }),
            None | Some(Ok(_)) => Ok(()),
        }
    }

    /// Returns the amounts for the scheduler.
    pub(crate) fn get(&self) -> Option<Needs> {
        self.resolved.as_ref()?.as_ref().ok().cloned()
    }
}
