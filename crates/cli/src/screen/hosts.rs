//! The hosts of a run on a cluster: how many jobs each has done and runs now.

use std::collections::BTreeMap;

use brigade::runner::{Ending, Outcome};

/// Maximum number of hosts that are named in a line.
const NAMED: usize = 12;

/// The hosts of a run, by name.
#[derive(Debug, Default)]
pub(super) struct HostStatistics(BTreeMap<String, ShownHost>);

#[derive(Debug, Default)]
struct ShownHost {
    running: u64,
    succeeded: u64,
    failed: u64,
}

impl HostStatistics {
    /// Notes the start of a job.
    pub(super) fn started(&mut self, host: Option<&str>) {
        if let Some(host) = host {
            self.0.entry(host.to_owned()).or_default().running += 1;
        }
    }

    /// Notes the end of an attempt.
    pub(super) fn ended(&mut self, outcome: &Outcome) {
        let Some(name) = &outcome.host else { return };
        let host = self.0.entry(name.to_string()).or_default();
        host.running = host.running.saturating_sub(1);
        match &outcome.ending {
            ending if ending.is_success() => host.succeeded += 1,
            Ending::Stopped => {}
            _ => host.failed += 1,
        }
    }

    /// Returns a line about each host, the busiest ones first.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut hosts: Vec<_> = self.0.iter().collect();
        hosts.sort_by_key(|(_, host)| {
            std::cmp::Reverse(host.succeeded + host.failed + host.running)
        });
        let line = |(name, host): &(&String, &ShownHost)| {
            let ShownHost { running, succeeded, failed } = host;
            let running = if *running > 0 { format!(", {running} running") } else { String::new() };
            let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
            format!("{name}: {succeeded} succeeded{failed}{running}")
        };
        let mut lines: Vec<String> = hosts.iter().take(NAMED).map(line).collect();
        if hosts.len() > NAMED {
            lines.push(format!("and {} more nodes", hosts.len() - NAMED));
        }
        lines
    }
}
