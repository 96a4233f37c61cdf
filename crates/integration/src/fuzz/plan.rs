//! What is decided before a round begins.

use brigade::Stdio;
use brigade_testkit::Random;

use super::Wire;

/// A round.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) link: Wire,
    pub(super) workers: usize,
    pub(super) stdio: Stdio,
    /// Whether arguments and results are large enough for arenas.
    pub(super) large: bool,
    pub(super) retries: u32,
    /// Items of a map that go to a worker at a time.
    pub(super) chunk: Option<usize>,
    /// What each of two threads does.
    pub(super) operations: u64,
    /// How many of a hundred of these are guilty tasks.
    pub(super) guilty: u64,
    /// Whether outcomes are awaited at the end only.
    pub(super) awaits_late: bool,
}

impl Plan {
    pub(super) fn new(random: &mut Random, link: Wire) -> Self {
        let small = |number| usize::try_from(number).expect("a small number");
        Self {
            link,
            workers: small(random.within(2..5)),
            // What workers inherit is the terminal of whoever runs this.
            stdio: *random.choose(&[Stdio::Capture, Stdio::Capture, Stdio::Null, Stdio::Inherit]),
            large: random.chance(60),
            retries: *random.choose(&[0, 0, 1, 3]),
            chunk: random.chance(60).then(|| small(random.within(1..20))),
            operations: random.within(5..40),
            guilty: *random.choose(&[5, 10, 30]),
            awaits_late: random.chance(50),
        }
    }
}
