//! What one contestant says about one section in one round.

use std::collections::BTreeMap;
use std::error::Error;

use serde::{Deserialize, Serialize};

/// Whatever goes wrong in a contestant ends as the reason why a figure is missing.
pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// One JSON object on standard output. The last word of a figure's name is its unit: `seconds`,
/// `per_second`, `count` or `percent`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) figures: BTreeMap<String, f64>,
    /// Figures that could not be had, with the reason; [`EVERYTHING`] stands for the rest.
    #[serde(default)]
    pub(crate) missing: BTreeMap<String, String>,
    /// What the work came to, so that contestants can be compared.
    #[serde(default)]
    pub(crate) answer: Option<String>,
}

/// Stands for all figures of a section.
pub(crate) const EVERYTHING: &str = "*";

impl Report {
    pub(crate) fn new(version: impl Into<String>) -> Self {
        Self { version: version.into(), ..Self::default() }
    }

    pub(crate) fn record(&mut self, name: impl Into<String>, value: f64) {
        self.figures.insert(name.into(), value);
    }

    pub(crate) fn miss(&mut self, name: impl Into<String>, reason: impl Into<String>) {
        self.missing.insert(name.into(), reason.into());
    }

    /// Measures one figure; that it cannot be had does not keep the others from being measured.
    pub(crate) fn attempt(&mut self, name: &str, measure: impl FnOnce() -> Outcome<f64>) {
        match measure() {
            Ok(value) => self.record(name, value),
            Err(error) => self.miss(name, error.to_string()),
        }
    }
}
