//! Who gets which cores: a pure state machine without locks, system calls and time.
//!
//! Cpus are numbered by their place in the topological order, so that an interval of numbers is a contiguous request, and a set is
//! a few words of bits. Requests for hardware threads look at the free *cpus*, requests for physical cores at the free *cores*:
//! those of which no cpu is leased. Both sets are kept up to date.

mod contiguous;
mod fewest;
mod layout;
mod place;
#[cfg(test)]
mod tests;
mod view;

use std::cell::RefCell;
use std::sync::Arc;

use crate::bits::Bits;
use crate::request::{CoreRequest, Policy, Smt};
pub(crate) use layout::Layout;
use place::Shape;
use view::View;

/// Which cpus are free.
#[derive(Debug)]
pub(crate) struct Allocator {
    layout: Arc<Layout>,
    free_cpus: Bits,
    /// Cores of which all cpus are free.
    free_cores: Bits,
    /// What strict requests get when all is free, of those that came lately: it does not depend on the state.
    ideals: RefCell<Vec<(CoreRequest, Shape)>>,
}

/// A pool sees few different requests; a search through more costs as much as working it out.
const MOST_IDEALS: usize = 32;

/// The places that a request takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    /// All that nobody else gets.
    pub(crate) taken: Bits,
    /// What of it is there to run on.
    pub(crate) used: Bits,
}

impl Allocator {
    pub(crate) fn new(layout: Arc<Layout>) -> Self {
        let free_cpus = Bits::below(layout.cpus.size());
        let free_cores = Bits::below(layout.cores.size());
        Self { layout, free_cpus, free_cores, ideals: RefCell::default() }
    }

    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    pub(crate) fn free_cpus(&self) -> &Bits {
        &self.free_cpus
    }

    /// The largest count with which this request could be granted if all were free.
    pub(crate) fn most(&self, request: &CoreRequest) -> usize {
        let view = self.view(request);
        match view.eligible(request) {
            None => view.size(),
            Some(eligible) if request.policy == Policy::Contiguous && request.is_strict() => {
                eligible.runs().map(|run| run.len()).max().unwrap_or(0)
            }
            Some(eligible) => eligible.len(),
        }
    }

    /// Cores for a request; nothing if it does not fit now. Takes none.
    pub(crate) fn choose(&self, request: &CoreRequest, not_these: &Bits) -> Option<Grant> {
        let view = self.view(request);
        let mut free = match request.smt {
            Smt::Share => self.free_cpus.clone(),
            Smt::Whole | Smt::Isolate => self.free_cores.clone(),
        };
        if !not_these.is_empty() {
            match request.smt {
                Smt::Share => free.subtract(not_these),
                Smt::Whole | Smt::Isolate => {
                    free.subtract(&not_these.iter().map(|cpu| self.layout.core_of(cpu)).collect());
                }
            }
        }
        let eligible = view.eligible(request);
        if let Some(eligible) = eligible {
            free.intersect_with(eligible);
        }
        let chosen = self.place(view, free, eligible, request)?;
        Some(match request.smt {
            Smt::Share => Grant { used: chosen.clone(), taken: chosen },
            Smt::Whole => {
                let taken: Bits =
                    chosen.iter().flat_map(|core| self.layout.cpus_of(core)).collect();
                Grant { used: taken.clone(), taken }
            }
            Smt::Isolate => Grant {
                taken: chosen.iter().flat_map(|core| self.layout.cpus_of(core)).collect(),
                used: chosen.iter().filter_map(|core| self.layout.cpus_of(core).next()).collect(),
            },
        })
    }

    /// Takes what was chosen.
    pub(crate) fn take(&mut self, grant: &Grant) {
        debug_assert!(grant.taken.is_subset(&self.free_cpus), "cores are leased twice");
        self.free_cpus.subtract(&grant.taken);
        for cpu in grant.taken.iter() {
            self.free_cores.remove(self.layout.core_of(cpu));
        }
    }

    /// Takes cores back.
    pub(crate) fn give_back(&mut self, taken: &Bits) {
        debug_assert!(!taken.intersects(&self.free_cpus), "cores are given back twice");
        self.free_cpus.union_with(taken);
        for cpu in taken.iter() {
            let core = self.layout.core_of(cpu);
            if self.layout.cpus_of(core).all(|cpu| self.free_cpus.contains(cpu)) {
                self.free_cores.insert(core);
            }
        }
    }

    fn view(&self, request: &CoreRequest) -> &View {
        match request.smt {
            Smt::Share => &self.layout.cpus,
            Smt::Whole | Smt::Isolate => &self.layout.cores,
        }
    }

    fn place(
        &self,
        view: &View,
        free: Bits,
        eligible: Option<&Bits>,
        request: &CoreRequest,
    ) -> Option<Bits> {
        let count = request.count;
        let place = match request.policy {
            Policy::Contiguous => {
                return contiguous::first_fit(&free, count).or_else(|| {
                    request.best_effort.then(|| contiguous::fewest_pieces(&free, count)).flatten()
                });
            }
            Policy::Compact => place::compact,
            Policy::Scatter => place::scattered,
        };
        if free.len() < count {
            return None;
        }
        let chosen = place(view, &free, count);
        if request.best_effort {
            return Some(chosen);
        }
        let mut ideals = self.ideals.borrow_mut();
        let known = ideals.iter().position(|(known, _)| known == request);
        let at = known.unwrap_or_else(|| {
            let all = eligible.cloned().unwrap_or_else(|| Bits::below(view.size()));
            if ideals.len() == MOST_IDEALS {
                ideals.clear();
            }
            ideals.push((*request, Shape::of(view, &place(view, &all, count))));
            ideals.len() - 1
        });
        let (got, ideal) = (Shape::of(view, &chosen), &ideals[at].1);
        let as_good = match request.policy {
            Policy::Scatter => got.is_as_spread_as(ideal),
            Policy::Compact | Policy::Contiguous => got.is_as_compact_as(ideal),
        };
        as_good.then_some(chosen)
    }

    /// Checks what must always hold.
    #[cfg(test)]
    pub(crate) fn sanity_check(&self) {
        for core in 0..self.layout.cores.size() {
            let free = self.layout.cpus_of(core).all(|cpu| self.free_cpus.contains(cpu));
            assert_eq!(self.free_cores.contains(core), free, "core {core}");
        }
        assert!(self.free_cpus.end() <= self.layout.cpus.size());
    }
}
