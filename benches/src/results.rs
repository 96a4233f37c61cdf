//! All that was measured, and the two files that it is written to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::contestant::Contestant;
use crate::report::{Outcome, Report};
use crate::section::Section;

/// Figures by what they tell, and what is missing.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    rounds: usize,
    /// About the machine and the programs, in order.
    facts: Vec<(String, String)>,
    versions: BTreeMap<String, String>,
    figures: Vec<Figure>,
    missing: BTreeSet<Missing>,
}

/// One value for each round.
#[derive(Debug, Serialize)]
struct Figure {
    section: String,
    name: String,
    contestant: String,
    values: Vec<Option<f64>>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Missing {
    section: String,
    name: String,
    contestant: String,
    reason: String,
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
            self.values(section, contestant, name)[round] = Some(value);
        }
        for (name, reason) in report.missing {
            let (section, contestant) = (section.name(), contestant.name().to_owned());
            self.missing.insert(Missing { section, name, contestant, reason });
        }
    }

    fn values(
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

    /// Writes both files, and the folders that they are in.
    pub(crate) fn write(&self, json: &Path, table: &Path) -> Outcome<()> {
        for (path, text) in [(json, serde_json::to_string_pretty(self)?), (table, self.lines())] {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }

    /// One line for each fact, version, figure and gap, with tabs between the columns; a round
    /// without a value has a dash. The numbers are written so that reading gives the same ones.
    fn lines(&self) -> String {
        let mut text = String::new();
        let mut line = |columns: &[&str]| {
            // A tab or an end of line within a reason would make two of one.
            let clean = columns.iter().map(|column| column.replace(['\t', '\n'], " "));
            // Writing to a string does not fail.
            let _ = writeln!(text, "{}", clean.collect::<Vec<_>>().join("\t"));
        };
        for (name, value) in &self.facts {
            line(&["fact", name, value]);
        }
        for (contestant, version) in &self.versions {
            line(&["version", contestant, version]);
        }
        for figure in &self.figures {
            let values: Vec<String> = figure
                .values
                .iter()
                .map(|value| value.map_or_else(|| "-".to_owned(), |value| format!("{value:e}")))
                .collect();
            let mut columns = vec!["figure", &figure.section, &figure.name, &figure.contestant];
            columns.extend(values.iter().map(String::as_str));
            line(&columns);
        }
        for missing in &self.missing {
            let Missing { section, name, contestant, reason } = missing;
            line(&["missing", section, name, contestant, reason]);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Results;
    use crate::contestant::Contestant;
    use crate::report::Report;
    use crate::section::Section;

    #[test]
    fn a_round_without_a_value_is_a_gap_and_no_zero() {
        let mut results = Results::new(2);
        let mut report = Report::new("0.1.0");
        report.record("files_seconds", 0.25);
        results.add(1, Section::Work, Contestant::Ring, report);
        let mut report = Report::new("");
        report.miss("files_seconds", "no\ttree\n");
        results.add(0, Section::Work, Contestant::Ring, report);
        results.add_fact("cores", "2");
        let expected = "fact\tcores\t2\nversion\tring\t0.1.0\n\
                        figure\twork\tfiles_seconds\tring\t-\t2.5e-1\n\
                        missing\twork\tfiles_seconds\tring\tno tree \n";
        assert_eq!(results.lines(), expected);
    }
}
