//! Counts of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::Wire;
use super::targets::Target;

/// Counts, for the person who reads the output.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    pub(super) rounds: u64,
    pub(super) right: u64,
    pub(super) garbled: u64,
    pub(super) died: u64,
    pub(super) late: u64,
    /// Values of attackers.
    pub(super) forged: u64,
    /// Tasks of attackers that failed.
    pub(super) failed: u64,
    /// Number of scribbles per link and target.
    targets: BTreeMap<(Wire, Target), u64>,
    guilty: BTreeMap<Wire, u64>,
    /// Maximum resident memory of the host.
    pub(super) peak: u64,
    pub(super) longest_round: Duration,
}

impl Summary {
    pub(super) fn count_guilty(&mut self, link: Wire, targets: &[Target]) {
        *self.guilty.entry(link).or_default() += 1;
        for target in targets {
            *self.targets.entry((link, *target)).or_default() += 1;
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.rounds += other.rounds;
        self.right += other.right;
        self.garbled += other.garbled;
        self.died += other.died;
        self.late += other.late;
        for (key, count) in other.targets {
            *self.targets.entry(key).or_default() += count;
        }
        for (key, count) in other.guilty {
            *self.guilty.entry(key).or_default() += count;
        }
        self.peak = self.peak.max(other.peak);
        self.longest_round = self.longest_round.max(other.longest_round);
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, right, garbled, died, late, .. } = self;
        writeln!(out, "{rounds} rounds, the longest took {:?}", self.longest_round)?;
        writeln!(
            out,
            "innocent tasks: {right} right; of workers that were scribbled over: {died} died, {late} late, {garbled} garbled"
        )?;
        if self.forged + self.failed > 0 {
            let Self { forged, failed, .. } = self;
            writeln!(out, "tasks of attackers: {forged} with a value, {failed} failed")?;
        }
        write!(out, "memory of the host at its peak: {} MiB", self.peak >> 20)?;
        for (link, count) in &self.guilty {
            write!(out, "\nguilty tasks over {}: {count}", link.name())?;
            for ((_, target), count) in self.targets.iter().filter(|((of, _), _)| of == link) {
                write!(out, ", {target:?} {count}")?;
            }
        }
        Ok(())
    }
}
