//! Decisions made before a round begins.

use brigade::Stdio;
use brigade_testkit::Random;

use super::Wire;

/// The settings of a round.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) link: Wire,
    pub(super) workers: usize,
    pub(super) stdio: Stdio,
    /// `true` if arguments and values are large enough for arenas.
    pub(super) large: bool,
    pub(super) retries: u32,
    /// Items of a map that travel in one chunk.
    pub(super) chunk: Option<usize>,
    /// Operations of each of the two threads.
    pub(super) operations: u64,
    /// Guilty tasks among a hundred operations.
    pub(super) guilty: u64,
    /// `true` if outcomes are awaited only at the end.
    pub(super) awaits_late: bool,
}

impl Plan {
    pub(super) fn new(random: &mut Random, link: Wire) -> Self {
        let small = |number| usize::try_from(number).expect("a small number");
        Self {
            link,
            workers: small(random.within(2..5)),
            // Inherited output would go to the terminal of the person who runs this.
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
