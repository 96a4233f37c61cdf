//! The figures of a measurement, as they are written to and read from files.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Errors are texts for the user.
pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// Everything that was measured in one run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// The machine and the run.
    pub(crate) facts: BTreeMap<String, String>,
    /// Cores that the process may use.
    pub(crate) cores: u32,
    pub(crate) measured: Vec<Measured>,
    /// Sections that have failed, with the reason.
    pub(crate) missing: BTreeMap<String, String>,
}

/// A figure of a section: what it prints as one line of JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Measured {
    Cost(Cost),
    Case(Case),
}

/// Time of one operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) name: String,
    /// Number of threads, workers or cores that take part.
    pub(crate) of: u32,
    pub(crate) nanoseconds: f64,
}

/// The rate of one case, medians of laps.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Case {
    pub(crate) section: String,
    pub(crate) workers: u32,
    /// Threads that submit, or that call.
    pub(crate) submitters: u32,
    /// The time of a task, in microseconds.
    pub(crate) micros: u32,
    pub(crate) per_second: f64,
    /// The slowest and the fastest lap.
    pub(crate) range: (f64, f64),
    /// The rate of plain threads or processes in the same minute.
    pub(crate) raw_per_second: f64,
    /// The 99th percentile of a call, of closed loops only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) p99_micros: Option<f64>,
}

impl Figures {
    pub(crate) fn read(path: &Path) -> Outcome<Self> {
        let text = fs::read_to_string(path).map_err(|error| {
            format!("cannot read {}: {error}; write it with `scale --json {0}`", path.display())
        })?;
        let invalid = |error| {
            format!(
                "{} is no file of `scale --json`, or of another version: {error}",
                path.display()
            )
        };
        Ok(serde_json::from_str(&text).map_err(invalid)?)
    }

    pub(crate) fn write(&self, path: &Path) -> Outcome<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        let describe = |error| format!("cannot write {}: {error}", path.display());
        Ok(fs::write(path, text).map_err(describe)?)
    }

    /// Returns the cases of a section.
    pub(crate) fn cases(&self, section: &str) -> impl Iterator<Item = &Case> {
        self.measured.iter().filter_map(move |measured| match measured {
            Measured::Case(case) if case.section == section => Some(case),
            _ => None,
        })
    }

    /// Returns what an operation takes, in nanoseconds.
    pub(crate) fn cost(&self, name: &str, of: u32) -> Option<f64> {
        self.measured.iter().find_map(|measured| match measured {
            Measured::Cost(cost) if cost.name == name && cost.of == of => Some(cost.nanoseconds),
            _ => None,
        })
    }
}

impl Case {
    /// Returns the share of `cores` cores that tasks had, or `None` for no-ops. Workers beyond the
    /// cores do not count.
    pub(crate) fn share(&self, per_second: f64, cores: u32) -> Option<f64> {
        let busy = per_second * f64::from(self.micros) / 1e6;
        (self.micros > 0).then(|| busy / f64::from(self.workers.min(cores)))
    }
}
