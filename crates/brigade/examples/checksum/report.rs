//! The summary of the run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::json;

/// The counts and times of the run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Number of files digested.
    pub(crate) files: u64,
    /// Number of bytes digested.
    pub(crate) bytes: u64,
    /// Number of symbolic links skipped.
    pub(crate) links: u64,
    /// Number of sockets, pipes and devices skipped.
    pub(crate) special: u64,
    failures: BTreeMap<String, u64>,
    seconds: f64,
    restarts: u64,
}

impl Report {
    pub(crate) fn digested(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }

    pub(crate) fn failed(&mut self, kind: String) {
        *self.failures.entry(kind).or_default() += 1;
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.values().sum()
    }

    pub(crate) fn end(&mut self, elapsed: Duration, restarts: u64) {
        self.seconds = elapsed.as_secs_f64();
        self.restarts = restarts;
    }

    pub(crate) fn to_json(&self) -> String {
        let summary = json!({
            "files": self.files,
            "bytes": self.bytes,
            "seconds": self.seconds,
            "megabytes_per_second": self.megabytes_per_second(),
            "files_per_second": self.files_per_second(),
            "failures": self.failures,
            "symbolic_links_skipped": self.links,
            "special_files_skipped": self.special,
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
        writeln!(out, "files     {} ({files_rate:.0} files/s)", self.files)?;
        writeln!(out, "bytes     {} ({rate:.1} MB/s)", self.bytes)?;
        writeln!(out, "seconds   {:.3}", self.seconds)?;
        if self.links + self.special > 0 {
            let (links, special) = (self.links, self.special);
            writeln!(out, "skipped   {links} links, {special} sockets, pipes and devices")?;
        }
        writeln!(out, "failures  {}", self.failures())?;
        for (kind, count) in &self.failures {
            writeln!(out, "          {count} {kind}")?;
        }
        write!(out, "restarts  {} workers", self.restarts)
    }
}
