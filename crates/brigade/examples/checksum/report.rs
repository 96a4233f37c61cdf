//! The summary.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::json;

use crate::Failure;
use crate::output::kind;

/// What came of the run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Files digested.
    pub(crate) files: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Paths that are no regular files.
    pub(crate) special: u64,
    pub(crate) seconds: f64,
    pub(crate) restarts: u64,
    by_kind: BTreeMap<String, u64>,
}

impl Report {
    pub(crate) fn digested(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }

    pub(crate) fn failed(&mut self, failure: &Failure) {
        *self.by_kind.entry(kind(failure)).or_default() += 1;
    }

    pub(crate) fn failures(&self) -> u64 {
        self.by_kind.values().sum()
    }

    pub(crate) fn to_json(&self) -> String {
        let summary = json!({
            "files": self.files,
            "bytes": self.bytes,
            "seconds": self.seconds,
            "megabytes_per_second": self.megabytes_per_second(),
            "files_per_second": self.files_per_second(),
            "failures": self.by_kind,
            "special_files_passed_over": self.special,
            "worker_restarts": self.restarts,
        });
        json!({ "summary": summary }).to_string()
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    fn files_per_second(&self) -> f64 {
        self.files as f64 / self.seconds
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, files_rate) = (self.megabytes_per_second(), self.files_per_second());
        writeln!(out, "files     {} ({files_rate:.0} a second)", self.files)?;
        writeln!(out, "bytes     {} ({rate:.1} MB/s)", self.bytes)?;
        writeln!(out, "seconds   {:.3}", self.seconds)?;
        if self.special > 0 {
            writeln!(out, "passed    {} links, sockets, pipes and devices", self.special)?;
        }
        writeln!(out, "failures  {}", self.failures())?;
        for (kind, count) in &self.by_kind {
            writeln!(out, "          {count} {kind}")?;
        }
        write!(out, "restarts  {} workers", self.restarts)
    }
}
