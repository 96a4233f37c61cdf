//! The cores and resources that a job needs.

use super::Job;

impl Job {
    /// Sets the number of cores it needs, at least 1.
    #[must_use]
    pub fn cores(mut self, cores: usize) -> Self {
        self.cores = Some(cores);
        self
    }

    /// Adds an amount of a [resource](crate::Builder::resource) that the job takes while it runs,
    /// instead of what the runner's setting says. Variables of its environment name what it has,
    /// such as `BRIGADE_RESOURCE_GPU=0,3`.
    #[must_use]
    pub fn needs(mut self, resource: impl Into<String>, amount: u64) -> Self {
        self.needs.push((resource.into(), amount));
        self
    }

    /// Returns the resources that the job needs, if it sets any.
    pub fn needed(&self) -> impl Iterator<Item = (&str, u64)> {
        self.needs.iter().map(|(name, amount)| (name.as_str(), *amount))
    }
}
