//! The resources of a run, and what a running attempt has of them.

use std::sync::Arc;

use brigade_base::{Grant, Inventory, Ledger, ResourceError, variables_in};
use brigade_sys::sync::Mutex;

use crate::job::Job;

/// The resources, and what is left of them.
#[derive(Debug, Clone)]
pub(crate) struct Resources {
    inventory: Inventory,
    ledger: Arc<Mutex<Ledger>>,
    /// Amounts for jobs that do not say what they need.
    usual: Vec<(String, u64)>,
}

/// The resources that an attempt has. They are given back when this is dropped.
#[derive(Debug)]
pub(crate) struct ResourceShare {
    grant: Option<Grant>,
    ledger: Arc<Mutex<Ledger>>,
    /// Tell the command what it has.
    pub(crate) variables: Vec<(String, String)>,
}

impl Default for Resources {
    fn default() -> Self {
        let ledger = Arc::new(Mutex::new(Ledger::new(&[])));
        Self { inventory: Inventory::default(), ledger, usual: Vec::new() }
    }
}

impl Resources {
    /// Returns the resources of a run, of which nothing is taken.
    ///
    /// # Errors
    /// If there is too little for jobs that say nothing of their own.
    pub(crate) fn new(
        inventory: Inventory,
        usual: Vec<(String, u64)>,
    ) -> Result<Self, ResourceError> {
        inventory.resolve(usual.iter().map(|(name, amount)| (name.as_str(), *amount)))?;
        let ledger = Arc::new(Mutex::new(Ledger::new(inventory.resources())));
        Ok(Self { inventory, ledger, usual })
    }

    /// Takes what a job needs. Returns `None` if others have too much of it.
    ///
    /// # Errors
    /// If there will never be enough.
    pub(crate) fn take(&self, job: &Job) -> Result<Option<ResourceShare>, ResourceError> {
        let needs = if job.needs.is_empty() { &self.usual } else { &job.needs };
        let named = needs.iter().map(|(name, amount)| (name.as_str(), *amount));
        let needs = self.inventory.resolve(named)?;
        Ok(self.ledger.lock().take(&needs).map(|grant| {
            let variables = variables_in(&self.inventory.describe(&grant));
            ResourceShare { grant: Some(grant), ledger: Arc::clone(&self.ledger), variables }
        }))
    }
}

impl Drop for ResourceShare {
    fn drop(&mut self) {
        if let Some(grant) = self.grant.take() {
            self.ledger.lock().give_back(grant);
        }
    }
}
