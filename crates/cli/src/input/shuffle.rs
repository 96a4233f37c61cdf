//! Shuffles jobs.

use std::task::Poll;

use brigade_base::SplitMix64;

use super::{Entry, Input, Problem, Ready};

/// Reads all jobs of an input, and puts them in an order determined by a seed. They keep their
/// numbers.
pub(crate) fn shuffled(mut input: Box<dyn Input>, seed: u64) -> Result<Ready, Problem> {
    let mut entries = Vec::new();
    while let Poll::Ready(Some(entry)) = input.next(true)? {
        entries.push(*entry);
    }
    shuffle(&mut entries, seed);
    Ok(Ready(entries.into_iter()))
}

/// Fisher–Yates shuffle. The same seed gives the same order on every machine and with every
/// version.
fn shuffle(entries: &mut [Entry], seed: u64) {
    let mut random = SplitMix64::new(seed);
    for last in (1..entries.len()).rev() {
        let pick = random.number() % (last as u64 + 1);
        entries.swap(last, usize::try_from(pick).unwrap_or(last));
    }
}

#[cfg(test)]
mod tests {
    use brigade::runner::Job;

    use super::*;

    fn order(seed: u64) -> Vec<u64> {
        let mut entries: Vec<Entry> =
            (1..=50).map(|number| Entry::new(number, Job::new("x"), Vec::new())).collect();
        shuffle(&mut entries, seed);
        entries.iter().map(|entry| entry.number).collect()
    }

    #[test]
    fn a_seed_determines_one_order_of_all_jobs() {
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        let mut sorted = order(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=50).collect::<Vec<_>>());
    }
}
