//! The removal of outcomes that have been received, outside of batches: nobody else reads them.
//! Pure.
//!
//! An outcome stays for longer than the lease after it was received. A node that gets the task
//! again in that time, because its acknowledgment was lost, finds the outcome and does not run the
//! task a second time. A server that crashes loses many acknowledgments, and nodes look for these
//! tasks for a minute. So outcomes stay longer if the link was lost.
//!
//! For each purge, the server looks at every outcome that it has, and does nothing else meanwhile.
//! So a purge is left out that would remove few of them, unless there is time for purges of all
//! clients. Those outcomes count the next time. To delete them one by one would cost more than to
//! publish them.

use std::time::Duration;

use crate::clock::Monotonic;

/// The shortest period for which outcomes stay: longer than an election of the server.
const MIN: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 15_000 });

/// Time after a reconnect in which no period ends. Nodes look for stuck messages six times in it.
const CALM: Duration = Duration::from_secs(64);

/// Time that a purge takes for each outcome of the stream, measured with nats-server 2.9.10.
const COST: Duration = Duration::from_nanos(1_300);

/// A purge of at least one in this many outcomes of the stream costs little beside their tasks.
const SHARE: u64 = 8;

/// Others take at most one part in this of the time if all clients have as many outcomes, and none
/// takes longer than `MAX`.
const PART: u32 = 10;
const MAX: Duration = Duration::from_secs(1);

/// An outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PurgeMark {
    /// Its sequence in the stream.
    pub(super) sequence: u64,
    /// Its number among those of the client, counted from 1.
    pub(super) number: u64,
}

/// The outcomes of the client that have been received, by their sequences in the stream.
#[derive(Debug)]
pub(super) struct Purge {
    period: Duration,
    /// The last outcome.
    last: PurgeMark,
    /// The last outcome when the period began.
    mark: PurgeMark,
    /// Number of outcomes that were removed: the first ones.
    removed: u64,
    /// Time of the last removal.
    removed_at: Monotonic,
    /// End of the period; `None` if there is nothing to remove.
    due: Option<Monotonic>,
    /// No period ends before.
    not_before: Monotonic,
}

impl Purge {
    /// Keeps outcomes for one and a half leases, and at most twice as long.
    pub(super) fn new(lease: Duration, now: Monotonic) -> Self {
        let period = MIN.max(lease + lease / 2);
        let none = PurgeMark::default();
        Self {
            period,
            last: none,
            mark: none,
            removed: 0,
            removed_at: now,
            due: None,
            not_before: now,
        }
    }

    /// Notes an outcome that was received.
    pub(super) fn received(&mut self, sequence: u64, now: Monotonic) {
        self.last = PurgeMark { sequence, number: self.last.number + 1 };
        self.due.get_or_insert_with(|| self.not_before.max(now + self.period));
    }

    /// Keeps outcomes for longer, because the link was lost.
    pub(super) fn put_off(&mut self, now: Monotonic) {
        self.not_before = now + CALM;
        self.mark = PurgeMark::default();
        self.due = self.due.map(|_| self.not_before);
    }

    /// Returns the number of outcomes up to this one that are in the stream.
    pub(super) fn count(&self, mark: PurgeMark) -> u64 {
        mark.number.saturating_sub(self.removed)
    }

    /// Returns the last outcome.
    pub(super) fn last(&self) -> PurgeMark {
        self.last
    }

    /// Notes that all outcomes before this one were removed.
    pub(super) fn removed(&mut self, before: PurgeMark, now: Monotonic) {
        self.removed = self.removed.max(before.number - 1);
        self.removed_at = now;
    }

    /// Returns whether the removal of all outcomes up to this one is worth its time, by the number
    /// of outcomes in the stream.
    pub(super) fn worth(
        &self,
        mark: PurgeMark,
        now: Monotonic,
    ) -> impl FnOnce(u64) -> bool + 'static {
        let (count, elapsed) = (self.count(mark), now.saturating_since(self.removed_at));
        move |all| is_worth_it(count, all, elapsed)
    }

    /// Returns the time at which [`tick`](Self::tick) is due.
    pub(super) fn due(&self) -> Option<Monotonic> {
        self.due
    }

    /// Returns the outcome before which all others are to be removed now, if there are any.
    ///
    /// It stays itself. A purge that leaves nothing would move the consumer that follows the
    /// outcomes to the end of the stream.
    pub(super) fn tick(&mut self, now: Monotonic) -> Option<PurgeMark> {
        self.due.filter(|due| *due <= now)?;
        let old = Some(self.mark).filter(|mark| self.count(*mark) > 1);
        self.mark = self.last;
        self.due = (self.count(self.last) > 1).then(|| now + self.period);
        old
    }
}

/// Decides on the removal of `count` outcomes of `all`, some time after the last one.
fn is_worth_it(count: u64, all: u64, elapsed: Duration) -> bool {
    if count.saturating_mul(SHARE) >= all {
        return true;
    }
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let one = nanos(COST).saturating_mul(all);
    let clients = all.div_ceil(count.max(1));
    one <= nanos(MAX) && one.saturating_mul(clients) <= nanos(elapsed / PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_share_is_removed_if_there_is_time() {
        let period = Duration::from_secs(15);
        let is_worth_it = |count, all| is_worth_it(count, all, period);
        assert!(is_worth_it(100_000, 800_000), "an eighth, whatever it costs");
        assert!(!is_worth_it(99_999, 800_000), "eight purges of a second each");
        // 100 clients with 200 tasks a second together, then with 20,000.
        assert!(is_worth_it(30, 3_000));
        assert!(!is_worth_it(3_000, 300_000));
        // After a break of the load, until which nothing was removed.
        assert!(super::is_worth_it(3_000, 300_000, 30 * period));
        let day = Duration::from_secs(24 * 3600);
        assert!(!super::is_worth_it(10_000, 1_000_000, day), "a pause of more than a second");
        assert!(super::is_worth_it(0, 0, Duration::ZERO));
        assert!(!super::is_worth_it(0, u64::MAX, Duration::MAX));
    }

    #[test]
    fn outcomes_are_removed_after_a_period_except_the_last() {
        let (start, lease) = (Monotonic::ZERO, Duration::from_secs(10));
        let after = |seconds| start + Duration::from_secs(seconds);
        let tick = |purge: &mut Purge, seconds| {
            let old = purge.tick(after(seconds))?;
            let count = purge.count(old) - 1;
            purge.removed(old, after(seconds));
            Some((old.sequence, count))
        };
        let mut purge = Purge::new(lease, start);
        assert_eq!((purge.due(), purge.count(purge.last())), (None, 0));
        purge.received(7, start);
        purge.received(9, after(14));
        assert_eq!((purge.due(), tick(&mut purge, 14)), (Some(after(15)), None));
        assert_eq!(tick(&mut purge, 15), None, "the last one is a second old");
        purge.received(12, after(29));
        assert_eq!(tick(&mut purge, 30), Some((9, 1)));
        assert_eq!(tick(&mut purge, 45), Some((12, 1)));
        assert_eq!((tick(&mut purge, 60), purge.due()), (None, None));
        purge.received(15, after(100));
        assert_eq!((purge.due(), tick(&mut purge, 115)), (Some(after(115)), None));
        purge.put_off(after(120));
        assert_eq!((purge.due(), tick(&mut purge, 184)), (Some(after(184)), None));
        assert_eq!(tick(&mut purge, 199), Some((15, 1)));
        purge.put_off(after(200));
        purge.received(16, after(201));
        assert_eq!((purge.due(), tick(&mut purge, 264)), (Some(after(264)), None));
        assert_eq!(tick(&mut purge, 279), Some((16, 1)));
    }

    #[test]
    fn outcomes_that_were_not_removed_count_next_time() {
        let (start, mut count) = (Monotonic::ZERO, 0);
        let mut purge = Purge::new(Duration::from_secs(10), start);
        for period in 0..5 {
            let now = start + Duration::from_secs(15) * period;
            purge.received(10 + u64::from(period), now);
            count = purge.tick(now).map_or(count, |old| purge.count(old));
        }
        assert_eq!(count, 4);
        purge.removed(purge.last(), start);
        assert_eq!(purge.count(purge.last()), 1);
    }
}
