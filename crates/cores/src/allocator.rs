//! Chooses cores for requests: a pure state machine without locks, system calls or time.
//!
//! A cpu is numbered by its position in the topological order, so that a contiguous request is an
//! interval of positions, and a set of cpus is a few words of bits. Requests for hardware threads
//! search the free *cpus*. Requests for physical cores search the free *cores*, of which no cpu is
//! leased. Both sets are kept up to date.

mod contiguous;
mod fewest;
mod groups;
mod layout;
mod pack;
mod placement;
#[cfg(test)]
mod tests;
mod view;

use std::cell::RefCell;
use std::sync::Arc;

use crate::bits::Bits;
use crate::request::{CoreRequest, Policy, Smt};
pub(crate) use layout::Layout;
use placement::PlacementShape;
use view::View;

/// The free cpus and cores of a machine.
#[derive(Debug)]
pub(crate) struct Allocator {
    layout: Arc<Layout>,
    free_cpus: Bits,
    /// Cores whose cpus are all free.
    free_cores: Bits,
    /// Cache of the placements that recent strict requests would get if everything were free, which
    /// does not depend on the state.
    ideals: RefCell<Vec<(CoreRequest, PlacementShape)>>,
}

/// Size of that cache. A pool sees few different requests, and searching a longer list would cost
/// as much as computing the placement.
const MAX_IDEALS: usize = 32;

/// The positions that a request was granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    /// All positions that are leased.
    pub(crate) taken: Bits,
    /// The positions among them to run on.
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

    /// Returns the largest count with which this request could be granted if everything were free.
    pub(crate) fn max_count(&self, request: &CoreRequest) -> usize {
        let view = self.view(request);
        match view.eligible(request) {
            None => view.size(),
            Some(eligible) if request.policy == Policy::Contiguous && request.is_strict() => {
                eligible.runs().map(|run| run.len()).max().unwrap_or(0)
            }
            Some(eligible) => eligible.len(),
        }
    }

    /// Chooses cores for a request without taking them. Returns `None` if the request does not fit
    /// now.
    pub(crate) fn choose(&self, request: &CoreRequest, excluded: &Bits) -> Option<Grant> {
        let view = self.view(request);
        let mut free = match request.smt {
            Smt::Share => self.free_cpus.clone(),
            Smt::Whole | Smt::Isolate => self.free_cores.clone(),
        };
        if !excluded.is_empty() {
            match request.smt {
                Smt::Share => free.subtract(excluded),
                Smt::Whole | Smt::Isolate => {
                    free.subtract(&excluded.iter().map(|cpu| self.layout.core_of(cpu)).collect());
                }
            }
        }
        let eligible = view.eligible(request);
        if let Some(eligible) = eligible {
            free.intersect_with(eligible);
        }
        let chosen = self.find(view, free, eligible, request)?;
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

    /// Takes chosen cores.
    pub(crate) fn take(&mut self, grant: &Grant) {
        debug_assert!(grant.taken.is_subset(&self.free_cpus), "a core is leased twice");
        self.free_cpus.subtract(&grant.taken);
        for cpu in grant.taken.iter() {
            self.free_cores.remove(self.layout.core_of(cpu));
        }
    }

    /// Makes cores free again.
    pub(crate) fn release(&mut self, taken: &Bits) {
        debug_assert!(!taken.intersects(&self.free_cpus), "a core is released twice");
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

    fn find(
        &self,
        view: &View,
        free: Bits,
        eligible: Option<&Bits>,
        request: &CoreRequest,
    ) -> Option<Bits> {
        let count = request.count;
        let policy = match request.policy {
            Policy::Contiguous => {
                return contiguous::first_fit(&free, count).or_else(|| {
                    request.best_effort.then(|| contiguous::fewest_runs(&free, count)).flatten()
                });
            }
            Policy::Compact => placement::compact,
            Policy::Scatter => placement::scattered,
        };
        if free.len() < count {
            return None;
        }
        let chosen = policy(view, &free, count);
        if request.best_effort {
            return Some(chosen);
        }
        let mut ideals = self.ideals.borrow_mut();
        let known = ideals.iter().position(|(known, _)| known == request);
        let at = known.unwrap_or_else(|| {
            let all = eligible.cloned().unwrap_or_else(|| Bits::below(view.size()));
            if ideals.len() == MAX_IDEALS {
                ideals.clear();
            }
            ideals.push((*request, PlacementShape::of(view, &policy(view, &all, count))));
            ideals.len() - 1
        });
        let (got, ideal) = (PlacementShape::of(view, &chosen), &ideals[at].1);
        let as_good = match request.policy {
            Policy::Scatter => got.is_as_spread_as(ideal),
            Policy::Compact | Policy::Contiguous => got.is_as_compact_as(ideal),
        };
        as_good.then_some(chosen)
    }
}
