//! Shuffles jobs.

use brigade_base::SplitMix64;

use super::{Entry, Fetch, Input, Ready};

/// Puts all jobs of an input in an order determined by a seed. They keep their numbers.
pub(crate) struct Shuffled;

impl Shuffled {
    /// Reads all jobs and shuffles them.
    pub(crate) fn read(
        mut input: Box<dyn Input>,
        seed: u64,
    ) -> Result<Ready, Box<dyn std::error::Error + Send + Sync>> {
        let mut entries = Vec::new();
        loop {
            match input.fetch_blocking() {
                Fetch::Entry(entry) => entries.push(*entry),
                Fetch::Failed(error) => return Err(error),
                Fetch::Later | Fetch::End => break,
            }
        }
        shuffle(&mut entries, seed);
        Ok(Ready::new(entries))
    }
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

    use crate::printer::Tag;

    use super::*;

    fn order(seed: u64) -> Vec<u64> {
        let mut entries: Vec<Entry> = (1..=50)
            .map(|number| Entry {
                number,
                job: Job::new("x"),
                arguments: Vec::new(),
                tag: Tag::default(),
            })
            .collect();
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
