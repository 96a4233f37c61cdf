//! Tests an arena of results with random steps against a model: the bytes of everything that is in
//! use stay the same.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Allocate(usize, WhenFull),
    Put(usize),
    /// One of the handles of the worker, as all of these.
    Export(Index),
    ExportInVain(Index),
    DropHandle(Index),
    /// One of the host's loans.
    Release(Index),
    Reclaim,
    Bury,
}

fn steps() -> impl Strategy<Value = Step> {
    let length = || prop_oneof![0..200_usize, 3_900..4_200_usize, 0..60_000_usize];
    let when_full = prop_oneof![Just(WhenFull::Fail), Just(WhenFull::Exceed)];
    let index = any::<Index>;
    prop_oneof![
        8 => (length(), when_full).prop_map(|(length, full)| Step::Allocate(length, full)),
        4 => length().prop_map(Step::Put),
        8 => index().prop_map(Step::Export),
        1 => index().prop_map(Step::ExportInVain),
        8 => index().prop_map(Step::DropHandle),
        12 => index().prop_map(Step::Release),
        2 => Just(Step::Reclaim),
    ]
}

struct World {
    arena: Arc<ResultArena>,
    view: Arc<ResultView>,
    /// Each with its bytes.
    handles: Vec<(FrozenBlock, Vec<u8>)>,
    loans: Vec<(Loan, Vec<u8>)>,
    number: usize,
}

impl World {
    fn new(protection: Protection) -> Self {
        let terms = Terms { budget: MEBIBYTE / 4, protection };
        let view = ResultView::create("test", MEBIBYTE, MEBIBYTE, terms).expect("memory");
        assert_eq!(view.waiting(), 0);
        let arena = ResultArena::open(copy_of(&view), view.len(), view.terms()).expect("an arena");
        Self { arena, view, handles: Vec::new(), loans: Vec::new(), number: 0 }
    }

    fn step(&mut self, step: &Step) {
        self.number += 1;
        match step {
            Step::Allocate(length, when_full) => {
                let Ok(mut block) = self.arena.allocate_block(*length, *when_full) else { return };
                let bytes = payload(self.number, *length);
                block.as_mut_bytes().copy_from_slice(&bytes);
                self.handles.push((block.freeze().expect("few mappings"), bytes));
            }
            Step::Put(length) => {
                let bytes = payload(self.number, *length);
                let Some((offset, length)) = self.arena.put(&[&bytes]) else { return };
                self.loans.push((self.view.loan(offset, length).expect("a block"), bytes));
            }
            Step::Export(which) => {
                let Some((block, bytes)) = get(&self.handles, *which) else { return };
                block.export();
                let loan = self.view.loan_buffer(block.offset(), bytes.len()).expect("a block");
                self.loans.push((loan, bytes.clone()));
            }
            Step::ExportInVain(which) => {
                let Some((block, _)) = get(&self.handles, *which) else { return };
                block.export();
                block.undo_export();
            }
            Step::DropHandle(which) => drop(take(&mut self.handles, *which)),
            Step::Release(which) => drop(take(&mut self.loans, *which)),
            Step::Reclaim => self.arena.reclaim(),
            Step::Bury => self.view.bury(),
        }
        self.sanity_check();
    }

    fn sanity_check(&self) {
        for (block, bytes) in &self.handles {
            assert_eq!(block.as_bytes(), bytes);
        }
        for (loan, bytes) in &self.loans {
            assert_eq!(loan.as_bytes(), bytes);
        }
    }
}

fn get<T>(from: &[T], which: Index) -> Option<&T> {
    (!from.is_empty()).then(|| which.get(from))
}

fn take<T>(from: &mut Vec<T>, which: Index) -> Option<T> {
    (!from.is_empty()).then(|| from.swap_remove(which.index(from.len())))
}

proptest! {
    #[test]
    fn bytes_in_use_never_change(
        steps in proptest::collection::vec(steps(), 0..80),
        read_only in any::<bool>(),
    ) {
        let protection = if read_only { Protection::ReadOnly } else { Protection::Trusted };
        let mut world = World::new(protection);
        for step in &steps {
            world.step(step);
        }
        world.handles.clear();
        world.loans.clear();
        world.arena.reclaim();
        prop_assert_eq!(world.arena.used(), 0, "not everything came back");
        // The whole arena is one free block again.
        let whole = MEBIBYTE - 2 * page_size();
        prop_assert!(world.arena.allocate_block(whole, WhenFull::Exceed).is_ok());
    }

    #[test]
    fn a_death_leaves_exactly_the_loans(steps in proptest::collection::vec(steps(), 0..40)) {
        let mut world = World::new(Protection::Trusted);
        for step in &steps {
            world.step(step);
        }
        world.handles.clear();
        world.step(&Step::Bury);
        while !world.loans.is_empty() {
            world.loans.pop();
            world.sanity_check();
        }
        prop_assert_eq!(memory_of_blocks(&world.view), 0);
    }
}
