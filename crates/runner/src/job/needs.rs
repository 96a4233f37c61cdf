//! The cores and resources that a job needs.

use super::Job;

brigade_sys::setters! {
    impl Job;

    /// Sets the number of cores it needs, at least 1.
    pub fn cores(self, cores: usize) { self.cores = Some(cores) }

    /// Adds an amount of a [resource](crate::Builder::resource) that the job takes while it runs,
    /// instead of what the runner's setting says. Variables of its environment name what it has,
    /// such as `BRIGADE_RESOURCE_GPU=0,3`.
    pub fn needs(self, resource: impl Into<String>, amount: u64) {
        self.needs.push((resource.into(), amount));
    }
}

impl Job {
    /// Returns the resources that the job needs, if it sets any.
    pub fn needed(&self) -> impl Iterator<Item = (&str, u64)> {
        self.needs.iter().map(|(name, amount)| (name.as_str(), *amount))
    }
}
