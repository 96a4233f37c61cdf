//! Medians, ratios and reasons, read from the results of a run.

use super::{Missing, Results};
use crate::report::EVERYTHING;

/// Identifies a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key<'a> {
    pub(crate) section: &'a str,
    pub(crate) name: &'a str,
    pub(crate) contestant: &'a str,
}

/// Median and range of a figure over the rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
}

/// Contestants that are not pools of processes like Brigade: itself, raw limits, threads, samples.
const NOT_PEERS: &[&str] = &["raw", "ring", "unrecorded", "ipc", "rayon", "tokio", "iceoryx2"];

pub(crate) fn key<'a>(section: &'a str, name: &'a str, contestant: &'a str) -> Key<'a> {
    Key { section, name, contestant }
}

impl Results {
    fn values(&self, key: Key<'_>) -> Option<&[Option<f64>]> {
        let Key { section, name, contestant } = key;
        let figure = self.figures.iter().find(|figure| {
            figure.section == section && figure.name == name && figure.contestant == contestant
        })?;
        Some(&figure.values)
    }

    /// Returns median and range of a figure, or `None` if it was never measured.
    pub(crate) fn summary(&self, key: Key<'_>) -> Option<Summary> {
        Summary::of(self.values(key)?.iter().flatten().copied().collect())
    }

    /// Returns the ratio of two figures, computed within each round: a disturbance of a whole round
    /// hardly affects it.
    pub(crate) fn ratio(&self, over: Key<'_>, under: Key<'_>) -> Option<Summary> {
        let pairs = self.values(over)?.iter().zip(self.values(under)?);
        Summary::of(pairs.filter_map(|(over, under)| Some((*over)? / (*under)?)).collect())
    }

    /// Returns the peer with the highest median.
    pub(crate) fn best_peer(&self, section: &str, name: &str) -> Option<&str> {
        let matching =
            self.figures.iter().filter(|figure| figure.section == section && figure.name == name);
        let peers = matching.filter(|figure| !NOT_PEERS.contains(&figure.contestant.as_str()));
        let medians = peers.filter_map(|figure| {
            let summary = self.summary(key(section, name, &figure.contestant))?;
            Some((summary.median, figure.contestant.as_str()))
        });
        Some(medians.max_by(|one, two| one.0.total_cmp(&two.0))?.1)
    }

    /// Returns the reason why a figure was not measured.
    pub(crate) fn reason(&self, key: Key<'_>) -> Option<&str> {
        let matches = |gap: &&Missing| {
            gap.section == key.section
                && gap.contestant == key.contestant
                && (gap.name == key.name || gap.name == EVERYTHING)
        };
        self.missing.iter().find(matches).map(|gap| gap.reason.as_str())
    }

    /// Returns the names of the peers that are pools, in the order of measurement.
    pub(crate) fn peers(&self) -> Vec<&str> {
        let mut peers: Vec<&str> = Vec::new();
        for figure in self.figures.iter().filter(|figure| figure.section != "cluster") {
            let name = figure.contestant.as_str();
            if !NOT_PEERS.contains(&name) && !peers.contains(&name) {
                peers.push(name);
            }
        }
        peers
    }
}

impl Summary {
    /// Returns `None` if there is no finite value.
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let (lowest, highest) = (*values.first()?, *values.last()?);
        let (below, above) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Self { median: f64::midpoint(below, above), lowest, highest })
    }
}

#[cfg(test)]
mod tests {
    use super::{Summary, key};
    use crate::results::Results;

    fn results() -> Results {
        Results::new(3)
            .with("crash", "learned", "ring", [Some(1.0), Some(4.0), None])
            .with("crash", "learned", "raw", [2.0, 2.0, 2.0].map(Some))
            .with("crash", "learned", "loky", [3.0, 3.0, 3.0].map(Some))
            .with("crash", "learned", "pebble", [None, Some(9.0), None])
            .without("crash", "*", "mpire", "not installed")
    }

    #[test]
    fn rounds_without_a_value_do_not_count() {
        let results = results();
        assert_eq!(
            results.summary(key("crash", "learned", "ring")),
            Some(Summary { median: 2.5, lowest: 1.0, highest: 4.0 })
        );
        assert_eq!(results.summary(key("crash", "learned", "mpire")), None);
        assert_eq!(results.reason(key("crash", "learned", "mpire")), Some("not installed"));
    }

    #[test]
    fn ratios_are_computed_within_a_round() {
        let ratio =
            results().ratio(key("crash", "learned", "ring"), key("crash", "learned", "raw"));
        assert_eq!(ratio, Some(Summary { median: 1.25, lowest: 0.5, highest: 2.0 }));
    }

    #[test]
    fn raw_limits_are_not_peers() {
        let results = results();
        assert_eq!(results.peers(), ["loky", "pebble"]);
        assert_eq!(results.best_peer("crash", "learned"), Some("pebble"));
        assert_eq!(results.best_peer("work", "learned"), None);
    }
}
