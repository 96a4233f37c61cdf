//! The last ten minutes as one value for each second, and as columns of a chart.

use brigade::metrics::PoolSnapshot;

/// One value for each second, oldest first. The last second is not complete.
#[derive(Debug)]
pub(super) struct Seconds {
    pub(super) finished: Vec<u64>,
    pub(super) queued: Vec<u64>,
}

/// The largest number of seconds that are shown.
const LENGTH: usize = 600;
/// The smallest one, so that a new pool has a chart that does not race.
const MIN: u64 = 60;

impl Seconds {
    pub(super) fn of(snapshot: &PoolSnapshot) -> Self {
        let age = snapshot.age.as_secs().saturating_add(1).max(MIN);
        let length = usize::try_from(age).unwrap_or(LENGTH).min(LENGTH);
        let (mut finished, mut queued) = (vec![0; length], vec![None; length]);
        for point in &snapshot.history {
            let ago = usize::try_from(point.ago.as_secs()).unwrap_or(usize::MAX);
            let Some(index) = (length - 1).checked_sub(ago) else { continue };
            finished[index] += point.finished;
            queued[index] = queued[index].max(Some(point.max_queued));
        }
        Self { finished, queued: fill(&queued, snapshot.queued) }
    }

    /// Returns the mean throughput of the last ten complete seconds.
    #[expect(clippy::cast_precision_loss, reason = "a few digits are shown")]
    pub(super) fn recent_throughput(&self) -> f64 {
        let complete = &self.finished[..self.finished.len() - 1];
        let recent = &complete[complete.len().saturating_sub(10)..];
        recent.iter().sum::<u64>() as f64 / recent.len() as f64
    }
}

/// Fills the gaps, in which nothing happened: the value was at most that of both neighbors.
fn fill(values: &[Option<u64>], present: u64) -> Vec<u64> {
    let mut after = vec![present; values.len()];
    for index in (0..values.len().saturating_sub(1)).rev() {
        after[index] = values[index + 1].unwrap_or(after[index + 1]);
    }
    let mut before = 0;
    let filled = values.iter().zip(after).map(|(value, after)| {
        let filled = value.unwrap_or_else(|| before.min(after));
        before = value.unwrap_or(before);
        filled
    });
    filled.collect()
}

/// Returns one value for each column: the largest of its seconds.
pub(super) fn columns(values: &[u64], width: u16) -> Vec<u64> {
    let width = usize::from(width);
    (0..width)
        .map(|column| {
            let from = column * values.len() / width;
            let to = ((column + 1) * values.len() / width).max(from + 1);
            values.get(from..to.min(values.len())).and_then(|part| part.iter().max()).copied()
        })
        .map(Option::unwrap_or_default)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::app::tests::example;

    #[test]
    fn gaps_have_the_smaller_neighbor() {
        let values = [None, Some(5), None, None, Some(3), None];
        assert_eq!(fill(&values, 9), [0, 5, 3, 3, 3, 3]);
        assert_eq!(fill(&values, 1), [0, 5, 3, 3, 3, 1]);
        assert_eq!(fill(&[], 1), Vec::<u64>::new());
    }

    #[test]
    fn columns_keep_the_peaks() {
        assert_eq!(columns(&[1, 9, 2, 3], 2), [9, 3]);
        assert_eq!(columns(&[1, 2], 4), [1, 1, 2, 2]);
        assert_eq!(columns(&[1, 2], 0), Vec::<u64>::new());
    }

    #[test]
    fn a_snapshot_has_ten_minutes_at_most() {
        let seconds = Seconds::of(&example(1));
        assert_eq!((seconds.finished.len(), seconds.queued.len()), (600, 600));
        assert!(Seconds::of(&PoolSnapshot::default()).recent_throughput().abs() < 0.001);
    }
}
