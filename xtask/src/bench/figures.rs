//! The figures that `compare` has written: values by round, and what comes of them.

use std::collections::BTreeMap;
use std::num::ParseFloatError;

/// Where a figure comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key<'a> {
    pub(super) section: &'a str,
    pub(super) name: &'a str,
    pub(super) contestant: &'a str,
}

/// Everything that one run has measured, in its order.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) facts: Vec<(String, String)>,
    pub(super) versions: BTreeMap<String, String>,
    pub(super) rows: Vec<Row>,
    pub(super) gaps: Vec<Gap>,
}

/// One value for each round in which there was one.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) section: String,
    pub(super) name: String,
    pub(super) contestant: String,
    values: Vec<Option<f64>>,
}

/// Why a figure is missing. The name [`EVERYTHING`] stands for the section's whole rest.
#[derive(Debug)]
pub(super) struct Gap {
    pub(super) section: String,
    pub(super) name: String,
    pub(super) contestant: String,
    pub(super) reason: String,
}

const EVERYTHING: &str = "*";

/// Over the rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Summary {
    pub(super) median: f64,
    pub(super) lowest: f64,
    pub(super) highest: f64,
}

/// Contestants that are no peers: Brigade itself, and what is below any pool.
const NO_PEERS: &[&str] = &["raw", "ring", "ipc", "rayon"];

pub(super) fn key<'a>(section: &'a str, name: &'a str, contestant: &'a str) -> Key<'a> {
    Key { section, name, contestant }
}

impl Figures {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut figures = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let columns: Vec<&str> = line.split('\t').collect();
            let owned = |index: usize| columns[index].to_owned();
            match columns[..] {
                ["fact", name, value] => figures.facts.push((name.to_owned(), value.to_owned())),
                ["version", contestant, version] => {
                    figures.versions.insert(contestant.to_owned(), version.to_owned());
                }
                ["figure", section, name, contestant, ref values @ ..] => {
                    let values = values.iter().map(|value| round(value)).collect::<Result<_, _>>();
                    figures.rows.push(Row {
                        section: section.to_owned(),
                        name: name.to_owned(),
                        contestant: contestant.to_owned(),
                        values: values.map_err(|error| format!("line {number}: {error}"))?,
                    });
                }
                ["missing", _, _, _, _] => figures.gaps.push(Gap {
                    section: owned(1),
                    name: owned(2),
                    contestant: owned(3),
                    reason: owned(4),
                }),
                _ => return Err(format!("line {number} of the figures is of no known kind")),
            }
        }
        Ok(figures)
    }

    fn values(&self, key: Key<'_>) -> Option<&[Option<f64>]> {
        let Key { section, name, contestant } = key;
        let row = self.rows.iter().find(|row| {
            row.section == section && row.name == name && row.contestant == contestant
        })?;
        Some(&row.values)
    }

    pub(super) fn summary(&self, key: Key<'_>) -> Option<Summary> {
        Summary::of(self.values(key)?.iter().flatten().copied().collect())
    }

    /// The ratio of two figures in each round: what disturbs a whole round disturbs it little.
    pub(super) fn ratio(&self, over: Key<'_>, under: Key<'_>) -> Option<Summary> {
        let pairs = self.values(over)?.iter().zip(self.values(under)?);
        Summary::of(pairs.filter_map(|(over, under)| Some((*over)? / (*under)?)).collect())
    }

    /// The peer with the highest median.
    pub(super) fn best_peer(&self, section: &str, name: &str) -> Option<&str> {
        let of_it = self.rows.iter().filter(|row| row.section == section && row.name == name);
        let peers = of_it.filter(|row| !NO_PEERS.contains(&row.contestant.as_str()));
        let medians = peers.filter_map(|row| {
            let summary = self.summary(key(section, name, &row.contestant))?;
            Some((summary.median, row.contestant.as_str()))
        });
        Some(medians.max_by(|one, two| one.0.total_cmp(&two.0))?.1)
    }

    /// Why there is no such figure.
    pub(super) fn reason(&self, key: Key<'_>) -> Option<&str> {
        let of_it = |gap: &&Gap| {
            gap.section == key.section
                && gap.contestant == key.contestant
                && (gap.name == key.name || gap.name == EVERYTHING)
        };
        self.gaps.iter().find(of_it).map(|gap| gap.reason.as_str())
    }

    /// Brigade's peers, in the order in which they were measured.
    pub(super) fn peers(&self) -> Vec<&str> {
        let mut peers: Vec<&str> = Vec::new();
        for row in &self.rows {
            let name = row.contestant.as_str();
            if !NO_PEERS.contains(&name) && !peers.contains(&name) {
                peers.push(name);
            }
        }
        peers
    }
}

impl Summary {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let (lowest, highest) = (*values.first()?, *values.last()?);
        let (below, above) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Self { median: f64::midpoint(below, above), lowest, highest })
    }
}

/// A dash is a round without a value.
fn round(text: &str) -> Result<Option<f64>, ParseFloatError> {
    if text == "-" { Ok(None) } else { text.parse().map(Some) }
}

#[cfg(test)]
mod tests {
    use super::{Figures, Summary, key};

    const TEXT: &str = "fact\tcores\t2\nversion\tring\t0.1.0\n\
        figure\tcrash\tlearned\tring\t1e0\t4e0\t-\n\
        figure\tcrash\tlearned\traw\t2e0\t2e0\t2e0\n\
        figure\tcrash\tlearned\tloky\t3e0\t3e0\t3e0\n\
        figure\tcrash\tlearned\tpebble\t-\t9e0\t-\n\
        missing\tcrash\t*\tmpire\tnot installed\n";

    #[test]
    fn rounds_without_a_value_are_left_out() {
        let figures = Figures::parse(TEXT).unwrap();
        assert_eq!(
            figures.summary(key("crash", "learned", "ring")),
            Some(Summary { median: 2.5, lowest: 1.0, highest: 4.0 })
        );
        assert_eq!(figures.summary(key("crash", "learned", "mpire")), None);
        assert_eq!(figures.reason(key("crash", "learned", "mpire")), Some("not installed"));
    }

    #[test]
    fn ratios_are_made_within_a_round() {
        let figures = Figures::parse(TEXT).unwrap();
        let ratio = figures.ratio(key("crash", "learned", "ring"), key("crash", "learned", "raw"));
        assert_eq!(ratio, Some(Summary { median: 1.25, lowest: 0.5, highest: 2.0 }));
    }

    #[test]
    fn raw_limits_are_no_peers() {
        let figures = Figures::parse(TEXT).unwrap();
        assert_eq!(figures.peers(), ["loky", "pebble"]);
        assert_eq!(figures.best_peer("crash", "learned"), Some("pebble"));
        assert_eq!(figures.best_peer("work", "learned"), None);
    }

    #[test]
    fn other_lines_are_refused() {
        assert!(Figures::parse("figure\ta\tb\tc\tx\n").is_err());
        assert!(Figures::parse("something\n").is_err());
    }
}
