//! Shares rows out among jobs: several rows for one job, as xargs does.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use super::Row;

/// The number of rows for each job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowSharing {
    /// The largest number of rows of a job; 0 for jobs that get none of their row's arguments.
    pub(crate) most: usize,
    /// The command of a job is shorter than this.
    pub(crate) limit: usize,
    /// The rows that are left at the end are divided among this number of jobs.
    pub(crate) spread: Option<NonZeroUsize>,
}

/// A command that is too long even with a single row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the command of job {number} would have {length} bytes, and at most {} are allowed; see --max-chars",
    limit.saturating_sub(1)
)]
pub(crate) struct TooLong {
    pub(crate) number: u64,
    pub(crate) length: usize,
    pub(crate) limit: usize,
}

/// Collects rows until they are enough for a job.
#[derive(Debug)]
pub(crate) struct Groups {
    sharing: RowSharing,
    /// The rows of the job that is not complete.
    pub(super) pending: Vec<Row>,
    /// The length that the pending rows add to a command.
    length: usize,
    /// The rows of jobs that are complete.
    pub(super) ready: VecDeque<Vec<Row>>,
}

impl RowSharing {
    /// Returns the number of jobs for this number of rows, if it does not depend on their length.
    pub(crate) fn jobs(&self, rows: u64) -> Option<u64> {
        let is_fixed = self.spread.is_none() && self.limit == usize::MAX;
        is_fixed.then(|| rows.div_ceil(self.most.max(1) as u64))
    }

    /// Returns `true` if each job has one row and all of its arguments.
    pub(crate) fn is_single(&self) -> bool {
        self.most == 1
    }
}

impl Groups {
    pub(crate) fn new(sharing: RowSharing) -> Self {
        Self { sharing, pending: Vec::new(), length: 0, ready: VecDeque::new() }
    }

    /// Returns the rows of the next job, if they are complete.
    pub(crate) fn pop(&mut self) -> Option<Vec<Row>> {
        self.ready.pop_front()
    }

    /// Takes a row that adds `length` to a command with `base` bytes. Fails with the length of the
    /// command if the row does not fit even alone.
    pub(crate) fn push(&mut self, row: Row, base: isize, length: usize) -> Result<(), usize> {
        let total = |length: usize| length.saturating_add_signed(base);
        let is_full = total(self.length + length) >= self.sharing.limit
            || self.pending.len() >= self.sharing.most;
        if is_full && !self.pending.is_empty() {
            self.complete();
        }
        if total(length) >= self.sharing.limit {
            return Err(total(length));
        }
        self.pending.push(row);
        self.length += length;
        // Rows that may have to be spread wait for the end or for one more row.
        if self.sharing.spread.is_none() && self.pending.len() >= self.sharing.most {
            self.complete();
        }
        Ok(())
    }

    /// Completes the jobs for the rest of the rows.
    pub(crate) fn finish(&mut self) {
        let rest = std::mem::take(&mut self.pending);
        self.length = 0;
        let jobs = self.sharing.spread.map_or(1, NonZeroUsize::get);
        let size = rest.len().div_ceil(jobs).max(1);
        self.ready.extend(rest.chunks(size).map(<[Row]>::to_vec));
    }

    fn complete(&mut self) {
        self.length = 0;
        self.ready.push_back(std::mem::take(&mut self.pending));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn popped(groups: &mut Groups) -> Vec<Vec<Row>> {
        std::iter::from_fn(|| groups.pop()).collect()
    }

    /// Returns the numbers of rows of the jobs, for rows with these lengths.
    fn sizes(sharing: RowSharing, base: isize, lengths: &[usize]) -> Vec<usize> {
        let mut groups = Groups::new(sharing);
        let mut jobs = Vec::new();
        for length in lengths {
            groups.push(Row::new(), base, *length).expect("short enough");
            jobs.extend(popped(&mut groups));
        }
        groups.finish();
        jobs.extend(popped(&mut groups));
        jobs.iter().map(Vec::len).collect()
    }

    fn below(limit: usize) -> RowSharing {
        RowSharing { most: usize::MAX, limit, spread: None }
    }

    fn at_most(most: usize) -> RowSharing {
        RowSharing { most, limit: usize::MAX, spread: None }
    }

    #[test]
    fn a_job_gets_a_number_of_rows_or_those_that_fit() {
        assert_eq!(sizes(at_most(2), 0, &[1; 5]), [2, 2, 1]);
        assert_eq!(sizes(at_most(0), 0, &[1; 2]), [1, 1]);
        assert_eq!(sizes(below(20), 4, &[5; 5]), [3, 2]);
        assert_eq!(sizes(below(10), -1, &[3, 3, 3, 9, 10]), [3, 1, 1]);
        assert_eq!(sizes(RowSharing { most: 2, ..below(20) }, 4, &[5, 5, 5, 15, 5]), [2, 1, 1, 1]);
        assert!(sizes(below(10), 0, &[]).is_empty());
    }

    #[test]
    fn the_rest_is_spread_over_the_slots() {
        let spread = |most, slots| RowSharing { most, limit: 20, spread: NonZeroUsize::new(slots) };
        assert_eq!(sizes(spread(usize::MAX, 2), 4, &[2; 10]), [7, 2, 1]);
        assert_eq!(sizes(spread(usize::MAX, 4), 0, &[1; 9]), [3, 3, 3]);
        assert_eq!(sizes(spread(3, 4), 0, &[1; 5]), [3, 1, 1]);
        assert_eq!(sizes(spread(2, 2), 0, &[1; 4]), [2, 1, 1]);
    }

    #[test]
    fn a_full_job_does_not_wait_for_the_next_row() {
        let mut groups = Groups::new(at_most(2));
        groups.push(Row::new(), 0, 1).expect("short enough");
        assert_eq!((groups.ready.len(), groups.pending.len()), (0, 1));
        groups.push(Row::new(), 0, 1).expect("short enough");
        assert_eq!((groups.ready.len(), groups.pending.len()), (1, 0));
    }

    #[test]
    fn a_row_that_does_not_fit_alone_is_an_error() {
        let mut groups = Groups::new(below(10));
        assert_eq!(groups.push(Row::new(), 4, 6), Err(10));
        assert_eq!(groups.push(Row::new(), 4, 5), Ok(()));
    }

    proptest! {
        #[test]
        fn each_row_is_in_one_job_and_in_order(
            most in 1_usize..5,
            limit in 11_usize..30,
            slots in 0_usize..4,
            lengths in prop::collection::vec(1_usize..9, 0..30),
        ) {
            let mut groups = Groups::new(RowSharing { most, limit, spread: NonZeroUsize::new(slots) });
            let mut jobs = Vec::new();
            for (index, length) in lengths.iter().enumerate() {
                groups.push(vec![index.to_string().into()], 1, *length).expect("short enough");
                jobs.extend(popped(&mut groups));
            }
            groups.finish();
            jobs.extend(popped(&mut groups));
            let words = jobs.iter().flatten().flatten();
            let words: Vec<String> = words.map(|word| word.display().to_string()).collect();
            let expected: Vec<String> = (0..lengths.len()).map(|index| index.to_string()).collect();
            prop_assert_eq!(words, expected);
            let mut lengths = lengths.iter();
            for job in &jobs {
                let length: usize = lengths.by_ref().take(job.len()).sum();
                prop_assert!(job.len() <= most && !job.is_empty() && length + 1 < limit);
            }
        }
    }
}
