//! Random requests compared with a naive allocator that searches lists of booleans from the start.

use std::sync::Arc;

use brigade_testkit::repetitions;
use proptest::prelude::*;

use super::*;
use crate::cpu_set::CpuSet;
use crate::request::CoreKind;
use crate::topology::tests::sample::{Shape, any_topology};
use crate::topology::{Level, Topology};

impl Allocator {
    /// Checks the invariants.
    fn sanity_check(&self) {
        for core in 0..self.layout.cores.size() {
            let free = self.layout.cpus_of(core).all(|cpu| self.free_cpus.contains(cpu));
            assert_eq!(self.free_cores.contains(core), free, "core {core}");
        }
        assert!(self.free_cpus.end() <= self.layout.cpus.size());
    }
}

fn allocator(topology: &Topology) -> Allocator {
    Allocator::new(Arc::new(Layout::new(topology)))
}

fn choose(allocator: &Allocator, request: &CoreRequest) -> Option<Grant> {
    allocator.choose(request, &Bits::default())
}

fn any_request() -> impl Strategy<Value = CoreRequest> {
    (
        1..9_usize,
        prop::sample::select(vec![Policy::Contiguous, Policy::Compact, Policy::Scatter]),
        prop::sample::select(vec![Smt::Share, Smt::Whole, Smt::Isolate]),
        any::<bool>(),
        prop::option::weighted(
            0.2,
            prop::sample::select(vec![CoreKind::Performance, CoreKind::Efficient]),
        ),
        prop::option::weighted(0.2, 0..3_u32),
    )
        .prop_map(|(count, policy, smt, best_effort, kind, numa_node)| CoreRequest {
            count,
            policy,
            smt,
            best_effort,
            kind,
            numa_node,
        })
}

#[derive(Debug, Clone)]
enum Step {
    Reserve(CoreRequest),
    /// Index into the current leases, modulo their number.
    Release(usize),
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => any_request().prop_map(Step::Reserve),
        2 => any::<usize>().prop_map(Step::Release),
    ];
    prop::collection::vec(step, 1..30)
}

/// The machine as a request sees it, computed without bits: slots in topological order, each with
/// its cpus.
struct Naive<'a> {
    topology: &'a Topology,
    free: CpuSet,
}

impl Naive<'_> {
    fn slots(&self, request: &CoreRequest) -> Vec<CpuSet> {
        match request.smt {
            Smt::Share => {
                self.topology.order().iter().map(|cpu| [*cpu].into_iter().collect()).collect()
            }
            Smt::Whole | Smt::Isolate => self.topology.cores(),
        }
    }

    /// Returns `true` for each slot that the request may take, given the free cpus.
    fn open(&self, request: &CoreRequest, free: &CpuSet) -> Vec<bool> {
        let kinds = self.topology.kinds();
        let node = |id| self.topology.objects(Level::NumaNode).find(|node| node.id == Some(id));
        self.slots(request)
            .iter()
            .map(|slot| {
                let kind = match request.kind {
                    None => true,
                    Some(CoreKind::Performance) => slot.is_subset(&kinds[0]),
                    Some(CoreKind::Efficient) => !slot.intersects(&kinds[0]),
                };
                let local = request
                    .numa_node
                    .is_none_or(|id| node(id).is_some_and(|node| slot.is_subset(&node.cpus)));
                kind && local && slot.is_subset(free)
            })
            .collect()
    }

    /// Finds the first free interval, slot by slot.
    fn interval(open: &[bool], count: usize) -> Option<usize> {
        (0..open.len()).find(|start| {
            *start + count <= open.len() && (*start..*start + count).all(|slot| open[slot])
        })
    }

    /// Counts the open slots in each group of a level.
    fn shares(&self, request: &CoreRequest, open: &[bool], level: Level) -> Vec<usize> {
        let slots = self.slots(request);
        let groups = self.topology.objects(level);
        groups
            .map(|group| {
                slots
                    .iter()
                    .zip(open)
                    .filter(|(slot, open)| **open && slot.intersects(&group.cpus))
                    .count()
            })
            .collect()
    }

    /// Returns the smallest number of groups with room for `count` slots.
    fn fewest(mut shares: Vec<usize>, count: usize) -> usize {
        shares.sort_unstable_by(|a, b| b.cmp(a));
        let mut sum = 0;
        let mut enough = |share: &usize| {
            let full = sum >= count;
            sum += share;
            !full
        };
        shares.iter().take_while(|share| enough(share)).count()
    }
}

const COMPARED: [Level; 3] = [Level::L3, Level::NumaNode, Level::Package];

/// Checks what every grant must satisfy in any state.
fn check_grant(naive: &Naive<'_>, request: &CoreRequest, cpus: &CpuSet, used: &CpuSet) {
    assert!(cpus.is_subset(&naive.free), "{cpus} of {}", naive.free);
    let open = naive.open(request, &naive.free);
    let slots = naive.slots(request);
    let chosen: Vec<usize> =
        (0..slots.len()).filter(|slot| slots[*slot].intersects(cpus)).collect();
    assert_eq!(chosen.len(), request.count);
    assert!(chosen.iter().all(|slot| open[*slot] && slots[*slot].is_subset(cpus)));
    match request.smt {
        Smt::Isolate => assert!(used.len() == request.count && used.is_subset(cpus)),
        Smt::Share | Smt::Whole => assert_eq!(used, cpus),
    }
    let all = naive.open(request, naive.topology.cpus());
    match request.policy {
        Policy::Contiguous => {
            let intervals = 1 + chosen.windows(2).filter(|pair| pair[1] > pair[0] + 1).count();
            if let Some(first) = Naive::interval(&open, request.count) {
                assert_eq!((intervals, chosen[0]), (1, first));
            } else {
                assert!(!request.is_strict(), "a strict request degraded");
                let runs: Vec<usize> =
                    open.split(|open| !open).map(<[bool]>::len).filter(|run| *run > 0).collect();
                assert_eq!(intervals, Naive::fewest(runs, request.count));
            }
        }
        Policy::Compact => {
            for level in COMPARED {
                let touched = naive.topology.touched(cpus, level);
                let possible = Naive::fewest(naive.shares(request, &open, level), request.count);
                if possible == 1 {
                    assert_eq!(touched, 1, "more than one {level}");
                }
                if request.is_strict() {
                    let best = allocator(naive.topology);
                    let best = choose(&best, request).expect("a count that fits");
                    let best = best_touched(naive.topology, &best, level);
                    assert!(touched <= best, "{touched} {level}s, {best} when all is free");
                }
            }
        }
        Policy::Scatter => {
            let packages = naive.shares(request, &open, Level::Package);
            let touched = naive.topology.touched(cpus, Level::Package);
            let possible = packages.iter().filter(|share| **share > 0).count().min(request.count);
            assert_eq!(touched, possible, "not as spread as it could be");
            if request.is_strict() {
                let shares = naive.shares(request, &all, Level::Package);
                let best = shares.iter().filter(|share| **share > 0).count().min(request.count);
                assert_eq!(touched, best, "a strict request degraded");
            }
        }
    }
}

fn best_touched(topology: &Topology, grant: &Grant, level: Level) -> usize {
    topology.touched(&Layout::new(topology).cpu_ids(&grant.taken), level)
}

/// Checks that the refusal was justified.
fn check_refusal(naive: &Naive<'_>, request: &CoreRequest) {
    let open = naive.open(request, &naive.free);
    let free = open.iter().filter(|open| **open).count();
    if !request.is_strict() {
        assert!(free < request.count, "refused although {free} are free");
    }
    match request.policy {
        Policy::Contiguous => assert_eq!(Naive::interval(&open, request.count), None),
        Policy::Compact => {
            let caches = naive.shares(request, &open, Level::L3);
            assert!(caches.iter().all(|share| *share < request.count), "one L3 cache has enough");
        }
        Policy::Scatter => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(repetitions(512)))]

    #[test]
    fn leases_match_those_of_a_naive_allocator(topology in any_topology(), steps in any_steps()) {
        let mut allocator = allocator(&topology);
        let layout = Arc::clone(allocator.layout());
        let mut leases: Vec<Grant> = Vec::new();
        for step in steps {
            match step {
                Step::Reserve(request) => {
                    let naive = Naive { topology: &topology, free: layout.cpu_ids(allocator.free_cpus()) };
                    match choose(&allocator, &request) {
                        Some(grant) => {
                            let (taken, used) = (layout.cpu_ids(&grant.taken), layout.cpu_ids(&grant.used));
                            check_grant(&naive, &request, &taken, &used);
                            allocator.take(&grant);
                            prop_assert!(leases.iter().all(|lease| !lease.taken.intersects(&grant.taken)));
                            leases.push(grant);
                        }
                        None => check_refusal(&naive, &request),
                    }
                }
                Step::Release(index) if !leases.is_empty() => {
                    let lease = leases.swap_remove(index % leases.len());
                    allocator.release(&lease.taken);
                }
                Step::Release(_) => {}
            }
            allocator.sanity_check();
        }
        for lease in leases {
            allocator.release(&lease.taken);
        }
        allocator.sanity_check();
        prop_assert_eq!(allocator.free_cpus().len(), topology.cpus().len());
    }

    #[test]
    fn the_maximum_count_is_granted_and_one_more_is_not(
        topology in any_topology(),
        request in any_request(),
    ) {
        let allocator = allocator(&topology);
        let most = allocator.max_count(&request);
        if most > 0 {
            let all = CoreRequest { count: most, ..request };
            prop_assert!(choose(&allocator, &all).is_some());
        }
        let more = CoreRequest { count: most + 1, ..request };
        prop_assert!(choose(&allocator, &more).is_none());
        if request.count <= most {
            prop_assert!(choose(&allocator, &request).is_some());
        }
    }

    #[test]
    fn excluded_cores_are_not_chosen(
        topology in any_topology(),
        request in any_request(),
        excluded in any::<u64>(),
    ) {
        let allocator = allocator(&topology);
        let mut excluded = Bits::from_words(vec![excluded]);
        excluded.intersect_with(allocator.free_cpus());
        if let Some(grant) = allocator.choose(&request, &excluded) {
            prop_assert!(!grant.taken.intersects(&excluded));
        }
    }
}

/// Generates small machines. Some groups may be unknown, and nodes may lie inside caches.
fn any_small_topology() -> impl Strategy<Value = Topology> {
    let chosen = prop::collection::vec(any::<prop::sample::Index>(), 1..13);
    let unknown = prop_oneof![Just(0.0), Just(0.3)]
        .prop_flat_map(|unknown| prop::collection::vec(prop::bool::weighted(unknown), 100));
    (any_topology(), chosen, unknown, any::<bool>()).prop_map(
        |(topology, chosen, unknown, swap)| {
            let cpus = chosen.iter().map(|index| *index.get(topology.order())).collect();
            let mut parts = crate::topology::Parts::from(topology.restricted_to(&cpus));
            let mut unknown = unknown.into_iter();
            parts.objects.retain(|_| !unknown.next().unwrap_or(false));
            for object in parts.objects.iter_mut().filter(|_| swap) {
                object.level = match object.level {
                    Level::L3 => Level::NumaNode,
                    Level::NumaNode => Level::L3,
                    level => level,
                };
            }
            parts.into()
        },
    )
}

/// Returns the groups of a level as bit sets of slots, computed cpu by cpu as docs/cores.md states
/// it; none if the machine describes none.
fn groups(topology: &Topology, slots: &[CpuSet], level: Level) -> Vec<u32> {
    let objects: Vec<_> = ALL_LEVELS.iter().flat_map(|level| topology.objects(*level)).collect();
    let known: CpuSet = topology.objects(level).flat_map(|object| object.cpus.iter()).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let mut groups = std::collections::BTreeMap::<_, CpuSet>::new();
    for cpu in topology.cpus().iter() {
        let mut around: Vec<_> =
            objects.iter().filter(|object| object.cpus.contains(cpu)).collect();
        around.sort_by_key(|object| (object.cpus.len(), object.level));
        let own = around.iter().find(|object| object.level == level);
        let larger =
            around.iter().find(|object| object.level > level || object.cpus.intersects(&known));
        let key = match (own, larger, around.last()) {
            (Some(own), ..) => (0, own.cpus.clone()),
            (None, Some(larger), _) => (1, larger.cpus.clone()),
            (None, None, Some(smaller)) => (2, smaller.cpus.clone()),
            (None, None, None) => (3, [cpu].into_iter().collect()),
        };
        groups.entry(key).or_default().insert(cpu);
    }
    let holds = |group: &CpuSet| {
        (0..slots.len()).filter(|slot| slots[*slot].intersects(group)).map(|slot| 1 << slot).sum()
    };
    groups.values().map(holds).collect()
}

const ALL_LEVELS: [Level; 7] = [
    Level::Core,
    Level::L2,
    Level::Cluster,
    Level::L3,
    Level::Die,
    Level::NumaNode,
    Level::Package,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(repetitions(512)))]

    /// Compares the chosen placement of each number of slots with every possible one.
    #[test]
    fn no_possible_placement_is_more_compact(
        topology in any_small_topology(),
        whole in any::<bool>(),
        leased in any::<u32>(),
    ) {
        let mut allocator = allocator(&topology);
        let layout = Arc::clone(allocator.layout());
        let smt = if whole { Smt::Whole } else { Smt::Share };
        let request = CoreRequest::new(1).policy(Policy::Compact).smt(smt);
        let naive = Naive { topology: &topology, free: topology.cpus().clone() };
        let slots = naive.slots(&request);
        let levels = COMPARED.map(|level| groups(&topology, &slots, level));
        let touched = |placement: u32| {
            levels.each_ref().map(|groups| {
                groups.iter().filter(|group| **group & placement != 0).count()
            })
        };
        let as_good = |a: &[usize; 3], b: &[usize; 3]| a.iter().zip(b).all(|(a, b)| a <= b);
        let taken = |allocator: &Allocator, request: &CoreRequest| {
            let cpus = layout.cpu_ids(&choose(allocator, request)?.taken);
            Some((0..slots.len()).filter(|slot| slots[*slot].intersects(&cpus)).map(|slot| 1_u32 << slot).sum::<u32>())
        };
        let ideals: Vec<_> = (1..=slots.len())
            .map(|count| touched(taken(&allocator, &CoreRequest { count, ..request }).unwrap()))
            .collect();
        let held = Grant {
            taken: (0..topology.cpus().len()).filter(|cpu| leased >> cpu & 1 == 1).collect(),
            used: Bits::default(),
        };
        allocator.take(&held);
        let open = naive.open(&request, &layout.cpu_ids(allocator.free_cpus()));
        let open: u32 = (0..slots.len()).filter(|slot| open[*slot]).map(|slot| 1_u32 << slot).sum();
        let mut possible = vec![std::collections::BTreeSet::new(); slots.len() + 1];
        for placement in (0..1_u32 << slots.len()).filter(|placement| placement & !open == 0) {
            possible[placement.count_ones() as usize].insert(touched(placement));
        }
        for count in 1..=slots.len() {
            let best_effort = CoreRequest { count, best_effort: true, ..request };
            let possible = &possible[count];
            if let Some(placement) = taken(&allocator, &best_effort) {
                prop_assert_eq!(placement.count_ones() as usize, count);
                let got = touched(placement);
                for other in possible {
                    prop_assert!(!as_good(other, &got) || *other == got, "{count}: {other:?} is possible, {got:?} was chosen");
                }
            } else {
                prop_assert!(possible.is_empty());
            }
            let ideal = &ideals[count - 1];
            let strict = taken(&allocator, &CoreRequest { count, ..request });
            prop_assert_eq!(strict.is_some(), possible.iter().any(|other| as_good(other, ideal)), "{}", count);
            if let Some(placement) = strict {
                prop_assert!(as_good(&touched(placement), ideal));
            }
        }
    }
}

const TWO_SOCKETS: Shape = Shape { packages: 2, nodes: 1, caches: 2, cores: 4, threads: 2 };

fn granted(allocator: &mut Allocator, request: CoreRequest) -> String {
    let grant = choose(allocator, &request).expect("room");
    allocator.take(&grant);
    allocator.layout().cpu_ids(&grant.used).to_string()
}

#[test]
fn each_policy_places_cores_as_documented() {
    let topology = TWO_SOCKETS.numbered();
    for (policy, smt, expected) in [
        (Policy::Contiguous, Smt::Share, "0-3"),
        (Policy::Contiguous, Smt::Whole, "0-7"),
        (Policy::Contiguous, Smt::Isolate, "0,2,4,6"),
        (Policy::Compact, Smt::Share, "0-3"),
        (Policy::Scatter, Smt::Share, "0,8,16,24"),
        (Policy::Scatter, Smt::Isolate, "0,8,16,24"),
    ] {
        let request = CoreRequest::new(4).policy(policy).smt(smt);
        assert_eq!(granted(&mut allocator(&topology), request), expected, "{request}");
    }
}

#[test]
fn compact_takes_the_cache_with_the_best_fit() {
    let mut allocator = allocator(&TWO_SOCKETS.numbered());
    let compact = |count| CoreRequest::new(count).policy(Policy::Compact);
    // Each cache has 8 cpus: 2 are left in the second one, exactly enough for the next 2.
    assert_eq!(granted(&mut allocator, compact(4)), "0-3");
    assert_eq!(granted(&mut allocator, compact(6)), "8-13");
    assert_eq!(granted(&mut allocator, compact(2)), "14-15");
    assert_eq!(granted(&mut allocator, compact(4)), "4-7");
    // The third cache has 8 free cpus, the fourth 5.
    allocator.take(&Grant { taken: (24..27).collect(), used: Bits::default() });
    assert_eq!(granted(&mut allocator, compact(4)), "28-31");
}

#[test]
fn strict_requests_wait_where_best_effort_is_granted() {
    let mut allocator = allocator(&TWO_SOCKETS.numbered());
    for cpu in [1, 9, 17, 25] {
        allocator.take(&Grant { taken: [cpu].into_iter().collect(), used: Bits::default() });
    }
    for policy in [Policy::Contiguous, Policy::Compact] {
        let strict = CoreRequest::new(8).policy(policy);
        assert_eq!(choose(&allocator, &strict), None);
        assert!(choose(&allocator, &strict.best_effort()).is_some());
    }
}

#[test]
fn nearer_nodes_are_preferred() {
    let topology = Shape { packages: 4, nodes: 1, caches: 1, cores: 4, threads: 1 }.numbered();
    let mut parts = crate::topology::Parts::from(topology);
    let row = |near: usize| (0..4).map(|to| if to == near { 15 } else { 30 }).collect::<Vec<_>>();
    parts.distances = (0..).zip([row(2), row(3), row(0), row(1)]).collect();
    let allocator = allocator(&parts.into());
    let grant = choose(&allocator, &CoreRequest::new(8).policy(Policy::Compact)).unwrap();
    assert_eq!(allocator.layout().cpu_ids(&grant.used).to_string(), "0-3,8-11");
}

/// Returns a machine with cpus 0 to 7 and only these groups.
fn described(groups: &[(Level, &str)]) -> Topology {
    let cpus: CpuSet = (0..8).collect();
    let object = |(level, list): &(Level, &str)| {
        crate::topology::Object::new(*level, None, list.parse().unwrap())
    };
    let objects = groups.iter().map(object).collect();
    crate::topology::Parts { online: cpus.clone(), cpus, objects, ..Default::default() }.into()
}

#[test]
fn cpus_without_a_known_cache_are_not_taken_for_neighbors() {
    let packages = [(Level::Package, "0,2,4,6"), (Level::Package, "1,3,5,7")];
    for caches in [
        [(Level::L2, "2,6"), (Level::L2, "3,7")],
        [(Level::L3, "2,6"), (Level::L3, "3,7")],
        [(Level::Cluster, "2,6"), (Level::NumaNode, "3,7")],
    ] {
        let topology = described(&[packages, caches].concat());
        for count in 2..5 {
            let request = CoreRequest::new(count).policy(Policy::Compact);
            let grant = choose(&allocator(&topology), &request).unwrap();
            assert_eq!(best_touched(&topology, &grant, Level::Package), 1, "{request}: {caches:?}");
        }
    }
}

#[test]
fn cpus_sharing_a_cache_share_an_unknown_package() {
    let topology = described(&[
        (Level::Package, "0-1"),
        (Level::L3, "0-1"),
        (Level::L3, "2-4"),
        (Level::L3, "5-7"),
    ]);
    let mut allocator = allocator(&topology);
    let compact = CoreRequest::new(2).policy(Policy::Compact);
    for expected in ["0-1", "2-3", "5-6"] {
        assert_eq!(granted(&mut allocator, compact), expected);
    }
    assert!(choose(&allocator, &compact).is_none(), "4 and 7 share no known group");
}
