//! Successes that are counted several at a time.

/// Successes of one slot in a row of which nothing is recorded but their number, bytes and run
/// time. Adding each of them up everywhere would take longer than it takes to run a brief task.
#[derive(Debug, Clone, Default)]
pub(super) struct Successes {
    pub(super) slot: u32,
    pub(super) count: u32,
    pub(super) bytes: u64,
    pub(super) run_time: u64,
    /// The time of the first one.
    pub(super) first: u64,
    /// The end of the second in which they are counted.
    end: u64,
    /// The longest run time that is not among the slowest tasks.
    longest: u64,
}

/// The largest number that is counted at a time, so that sums of run times do not overflow.
const MAX: u32 = 1 << 10;

/// The longest run time that is counted this way.
const MAX_RUN: u64 = 1 << 40;

impl Successes {
    /// Starts with none.
    pub(super) fn begin(slot: u32, now: u64, end: u64, longest: u64) -> Self {
        Self { slot, first: now, end, longest: longest.min(MAX_RUN), ..Self::default() }
    }

    /// Adds one. Returns `false` if it does not fit to the others.
    #[inline]
    pub(super) fn add(&mut self, slot: u32, now: u64, run_time: u64, bytes: u64) -> bool {
        let fits =
            self.slot == slot && now < self.end && run_time <= self.longest && self.count < MAX;
        if fits {
            self.count += 1;
            self.bytes += bytes;
            self.run_time += run_time;
        }
        fits
    }
}
