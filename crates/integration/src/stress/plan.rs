//! The plan of a round, drawn before it begins.

use std::time::Duration;

use brigade::{Shutdown, Start};
use brigade_testkit::Random;

use super::surroundings::Surroundings;

/// The settings of a round.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) workers: usize,
    pub(super) queue_limit: usize,
    pub(super) min_workers: usize,
    pub(super) spare_workers: usize,
    pub(super) start: Start,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) max_tasks: Option<u64>,
    pub(super) max_age: Option<Duration>,
    /// `true` if the number of workers changes.
    pub(super) resizes: bool,
    pub(super) submitters: u64,
    /// Operations of each submitter.
    pub(super) operations: u64,
    /// Looks of a thousand that the intruder uses.
    pub(super) intrusions: u64,
    pub(super) ending: Ending,
    /// Moment of the shutdown; `None` means after the last submitter.
    pub(super) moment: Option<Duration>,
    /// Number of short tasks that come one by one before everything else, in a pool without
    /// workers. A hanging task and others follow.
    pub(super) short_tasks: Option<u64>,
    pub(super) surroundings: Option<Surroundings>,
}

/// The way in which a pool ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ending {
    Drop,
    Drain,
    Within(Shutdown, Duration),
}

/// Frequencies, in thousandths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mix {
    /// Tasks that do harm or fail.
    pub(super) misdeeds: u64,
    /// Slow tasks among the harmless ones.
    pub(super) slow: u64,
    /// Large arguments.
    pub(super) large: u64,
    /// Upheavals: resizes, warm-ups, broadcasts and maps.
    pub(super) upheavals: u64,
}

impl Mix {
    /// Nearly everything fails, so that a short time suffices.
    pub(super) const WILD: Self = Self { misdeeds: 200, slow: 667, large: 30, upheavals: 50 };
    /// The load of a badly treated pool, calm enough for very many tasks.
    pub(super) const CALM: Self = Self { misdeeds: 12, slow: 50, large: 1, upheavals: 1 };
}

/// Returns `true` in `share` of a thousand cases.
pub(super) fn happens(random: &mut Random, share: u64) -> bool {
    random.within(0..1000) < share
}

impl Plan {
    pub(super) fn new(
        random: &mut Random,
        workers: usize,
        surroundings: Option<Surroundings>,
    ) -> Self {
        let modes = [Shutdown::Drain, Shutdown::CancelPending, Shutdown::Terminate, Shutdown::Kill];
        let ending = match random.within(0..4) {
            0 => Ending::Drop,
            1 => Ending::Drain,
            _ => Ending::Within(*random.choose(&modes), random.below(Duration::from_millis(200))),
        };
        let at_random = random.chance(50) && !matches!(ending, Ending::Drop);
        let most = small(random.within(1..workers as u64 + 1));
        Self {
            workers: most,
            min_workers: small(random.within(0..most as u64 + 1)),
            spare_workers: if random.chance(30) { small(random.within(1..3)) } else { 0 },
            start: *random.choose(&[Start::Auto, Start::Auto, Start::Fork, Start::Exec]),
            idle_timeout: random.chance(30).then(|| random.below(Duration::from_millis(10))),
            max_tasks: random.chance(30).then(|| random.within(1..20)),
            max_age: random.chance(20).then(|| Duration::from_millis(random.within(1..50))),
            resizes: random.chance(40),
            queue_limit: *random.choose(&[1, 8, 64, 100_000]),
            submitters: random.within(1..4),
            operations: random.within(1..200),
            intrusions: *random.choose(&[0, 0, 200, 600]),
            ending,
            moment: at_random.then(|| random.below(Duration::from_millis(100))),
            short_tasks: (most > 1 && random.chance(15)).then(|| random.within(1..300)),
            surroundings,
        }
    }

    pub(super) fn is_in(&self, surroundings: Surroundings) -> bool {
        self.surroundings == Some(surroundings)
    }

    /// Returns `true` if hanging tasks are ended by the end of the pool, and nobody waits for them
    /// before.
    pub(super) fn tasks_may_hang(&self) -> bool {
        self.moment.is_some() && matches!(self.ending, Ending::Within(..))
    }
}

fn small(number: u64) -> usize {
    usize::try_from(number).expect("a small number")
}
