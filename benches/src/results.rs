//! All figures of a run.

mod query;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::contestant::Contestant;
use crate::report::{Outcome, Report};
use crate::section::Section;

pub(crate) use query::{Key, Summary, key};

/// All figures of a run, and the reasons for missing ones.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    rounds: usize,
    /// Facts about the machine and the programs, in order.
    pub(crate) facts: Vec<(String, String)>,
    /// Versions by contestant.
    pub(crate) versions: BTreeMap<String, String>,
    /// In the order of measurement.
    pub(crate) figures: Vec<Figure>,
    pub(crate) missing: BTreeSet<Missing>,
}

/// A figure with one value for each round; `None` if it was not measured in that round.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) section: String,
    pub(crate) name: String,
    pub(crate) contestant: String,
    values: Vec<Option<f64>>,
}

/// A figure that was not measured, and the reason. The name
/// [`EVERYTHING`](crate::report::EVERYTHING) stands for all others of the section.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Missing {
    pub(crate) section: String,
    pub(crate) name: String,
    pub(crate) contestant: String,
    pub(crate) reason: String,
}

impl Results {
    pub(crate) fn new(rounds: usize) -> Self {
        Self {
            rounds,
            facts: Vec::new(),
            versions: BTreeMap::new(),
            figures: Vec::new(),
            missing: BTreeSet::new(),
        }
    }

    pub(crate) fn add_fact(&mut self, name: &str, value: impl Into<String>) {
        self.facts.push((name.to_owned(), value.into()));
    }

    /// Adds the report of one turn.
    pub(crate) fn add(
        &mut self,
        round: usize,
        section: Section,
        contestant: Contestant,
        report: Report,
    ) {
        if !report.version.is_empty() {
            self.versions.insert(contestant.name().to_owned(), report.version);
        }
        for (name, value) in report.figures {
            self.values_mut(section, contestant, name)[round] = Some(value);
        }
        for (name, reason) in report.missing {
            let (section, contestant) = (section.name(), contestant.name().to_owned());
            self.missing.insert(Missing { section, name, contestant, reason });
        }
    }

    fn values_mut(
        &mut self,
        section: Section,
        contestant: Contestant,
        name: String,
    ) -> &mut [Option<f64>] {
        let (section, contestant) = (section.name(), contestant.name());
        let known = self.figures.iter().position(|figure| {
            figure.section == section && figure.name == name && figure.contestant == contestant
        });
        let index = known.unwrap_or_else(|| {
            let values = vec![None; self.rounds];
            let contestant = contestant.to_owned();
            self.figures.push(Figure { section, name, contestant, values });
            self.figures.len() - 1
        });
        &mut self.figures[index].values
    }

    /// Writes all figures to a file as JSON, and creates its folder.
    pub(crate) fn write(&self, path: &Path) -> Outcome<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let json = serde_json::to_string_pretty(self)?;
        fs::write(path, json).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(())
    }
}

#[cfg(test)]
impl Results {
    /// Adds the values of one figure, one for each round.
    pub(crate) fn with(
        mut self,
        section: &str,
        name: &str,
        contestant: &str,
        values: impl IntoIterator<Item = Option<f64>>,
    ) -> Self {
        let [section, name, contestant] = [section, name, contestant].map(str::to_owned);
        let values = values.into_iter().collect();
        self.figures.push(Figure { section, name, contestant, values });
        self
    }

    /// Adds the reason for a missing figure.
    pub(crate) fn without(
        mut self,
        section: &str,
        name: &str,
        contestant: &str,
        reason: &str,
    ) -> Self {
        let [section, name, contestant] = [section, name, contestant].map(str::to_owned);
        self.missing.insert(Missing { section, name, contestant, reason: reason.to_owned() });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::Results;
    use crate::contestant::Contestant;
    use crate::report::Report;
    use crate::section::Section;

    #[test]
    fn a_round_without_a_value_is_a_gap_not_a_zero() {
        let mut results = Results::new(2);
        let mut report = Report::new("0.1.0");
        report.record("files_seconds", 0.25);
        results.add(1, Section::Work, Contestant::Ring, report);
        let mut report = Report::new("");
        report.miss("files_seconds", "no tree");
        results.add(0, Section::Work, Contestant::Ring, report);
        assert_eq!(results.figures[0].values, [None, Some(0.25)]);
        assert_eq!(results.versions["ring"], "0.1.0");
        let missing: Vec<_> = results.missing.iter().map(|missing| &missing.reason).collect();
        assert_eq!(missing, ["no tree"]);
    }
}
