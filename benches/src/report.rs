//! The report of one contestant about one section in one round.

use std::collections::BTreeMap;
use std::error::Error;

use serde::{Deserialize, Serialize};

/// Any error in a contestant becomes the reason for a missing figure.
pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// Figures of one turn, printed as one JSON object. The last word of a figure's name is its unit:
/// `seconds`, `per_second`, `count`, `percent` or `times`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) figures: BTreeMap<String, f64>,
    /// Figures that were not measured, with the reason; [`EVERYTHING`] stands for all others.
    #[serde(default)]
    pub(crate) missing: BTreeMap<String, String>,
    /// Checksum of the results, to check that all contestants did the same work.
    #[serde(default)]
    pub(crate) checksum: Option<String>,
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

    /// Measures one figure. A failure is recorded as the reason, so that the other figures are
    /// still measured.
    pub(crate) fn attempt(&mut self, name: &str, measure: impl FnOnce() -> Outcome<f64>) {
        match measure() {
            Ok(value) => self.record(name, value),
            Err(error) => self.miss(name, error.to_string()),
        }
    }
}
