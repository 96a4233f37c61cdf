//! Tests the ranges against a model with one state for each unit of memory.

use proptest::prelude::*;

use super::*;

const LENGTH: usize = 48;
const KEPT: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Cold,
    Warm,
    Taken,
    Leaving,
}

#[derive(Debug, Clone)]
enum Step {
    Take(usize),
    TakeWarm(usize),
    /// One of the taken ranges.
    GiveBack(prop::sample::Index),
    GiveBackCold(prop::sample::Index),
    /// One of the leaving ranges has left.
    Left(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..20_usize).prop_map(Step::Take),
        2 => (1..20_usize).prop_map(Step::TakeWarm),
        4 => any::<prop::sample::Index>().prop_map(Step::GiveBack),
        1 => any::<prop::sample::Index>().prop_map(Step::GiveBackCold),
        2 => any::<prop::sample::Index>().prop_map(Step::Left),
    ]
}

struct World {
    ranges: Ranges,
    units: [Unit; LENGTH],
    taken: Vec<Range<usize>>,
    leaving: Vec<Range<usize>>,
}

impl World {
    fn new() -> Self {
        let ranges = Ranges::new(LENGTH, KEPT);
        Self { ranges, units: [Unit::Cold; LENGTH], taken: Vec::new(), leaving: Vec::new() }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Take(length) => {
                let start = self.ranges.take(*length);
                self.check_choice(*length, start, |unit| matches!(unit, Unit::Cold | Unit::Warm));
            }
            Step::TakeWarm(length) => {
                let start = self.ranges.take_warm(*length);
                self.check_choice(*length, start, |unit| unit == Unit::Warm);
            }
            Step::GiveBack(which) => {
                let Some(range) = pick(&mut self.taken, *which) else { return };
                let leaving = self.ranges.give_back(range.clone());
                self.set(range, Unit::Taken, Unit::Warm);
                for range in leaving {
                    self.set(range.clone(), Unit::Warm, Unit::Leaving);
                    let above = &self.units[range.end..];
                    assert!(!above.contains(&Unit::Warm), "the highest ranges leave first");
                    self.leaving.push(range);
                }
            }
            Step::GiveBackCold(which) => {
                let Some(range) = pick(&mut self.taken, *which) else { return };
                self.ranges.give_back_cold(range.clone());
                self.set(range, Unit::Taken, Unit::Cold);
            }
            Step::Left(which) => {
                let Some(range) = pick(&mut self.leaving, *which) else { return };
                self.ranges.give_back_cold(range.clone());
                self.set(range, Unit::Leaving, Unit::Cold);
            }
        }
        self.sanity_check();
    }

    /// Checks that the choice is the first of the smallest runs that are large enough; `None` if
    /// there is no such run.
    fn check_choice(&mut self, length: usize, start: Option<usize>, fits: impl Fn(Unit) -> bool) {
        let candidates = runs(&self.units, fits).into_iter().filter(|run| run.len() >= length);
        let best = candidates.min_by_key(|run| (run.len(), run.start)).map(|run| run.start);
        assert_eq!(start, best);
        if let Some(start) = start {
            self.units[start..start + length].fill(Unit::Taken);
            self.taken.push(start..start + length);
        }
    }

    fn set(&mut self, range: Range<usize>, before: Unit, after: Unit) {
        for unit in &mut self.units[range] {
            assert_eq!(*unit, before);
            *unit = after;
        }
    }

    fn sanity_check(&self) {
        let free = |unit| matches!(unit, Unit::Cold | Unit::Warm);
        for (set, runs) in [
            (&self.ranges.free, runs(&self.units, free)),
            (&self.ranges.warm, runs(&self.units, |unit| unit == Unit::Warm)),
        ] {
            let by_start: Vec<_> = set.by_start.iter().map(|(&start, &end)| start..end).collect();
            assert_eq!(by_start, runs, "the ranges are not the longest runs of such units");
            let mut by_length: Vec<_> = runs.iter().map(|run| (run.len(), run.start)).collect();
            by_length.sort_unstable();
            assert_eq!(set.by_length.iter().copied().collect::<Vec<_>>(), by_length);
            assert_eq!(set.total, runs.iter().map(Range::len).sum::<usize>());
        }
        assert!(self.ranges.warm.total <= KEPT);
    }
}

fn pick(from: &mut Vec<Range<usize>>, which: prop::sample::Index) -> Option<Range<usize>> {
    (!from.is_empty()).then(|| from.swap_remove(which.index(from.len())))
}

/// Returns the longest runs of units of a kind, in order.
fn runs(units: &[Unit], kind: impl Fn(Unit) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for index in (0..units.len()).filter(|index| kind(units[*index])) {
        match runs.last_mut() {
            Some(last) if last.end == index => last.end += 1,
            _ => runs.push(index..index + 1),
        }
    }
    runs
}

proptest! {
    #[test]
    fn ranges_behave_like_a_table_of_units(steps in proptest::collection::vec(steps(), 0..120)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        for range in std::mem::take(&mut world.taken) {
            let leaving = world.ranges.give_back(range);
            world.leaving.extend(leaving);
        }
        for range in std::mem::take(&mut world.leaving) {
            world.ranges.give_back_cold(range);
        }
        prop_assert_eq!(world.ranges.free.last(), Some(0..LENGTH), "not everything came back as one range");
    }
}

#[test]
fn memory_just_given_back_is_taken_again() {
    let mut ranges = Ranges::new(1000, 100);
    assert_eq!(ranges.take(60), Some(0));
    assert_eq!(ranges.take(30), Some(60));
    assert!(ranges.give_back(0..60).is_empty());
    assert_eq!(ranges.take_warm(61), None);
    assert_eq!(ranges.take_warm(60), Some(0));
}

#[test]
fn memory_beyond_the_bound_leaves() {
    let mut ranges = Ranges::new(1000, 100);
    assert_eq!(ranges.take(150), Some(0));
    assert!(ranges.give_back(0..150).iter().eq([&(100..150)]));
    assert_eq!(ranges.take(1000), None);
    ranges.give_back_cold(100..150);
    assert_eq!(ranges.take(1000), Some(0));
}
