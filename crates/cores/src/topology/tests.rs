//! The topological order, the drawing, and the handling of contradictions.

use proptest::prelude::*;

use super::*;
use sample::{Shape, any_topology};

pub(crate) mod sample;

fn set(list: &str) -> CpuSet {
    list.parse().unwrap()
}

proptest! {
    #[test]
    fn the_order_has_each_cpu_once_and_keeps_groups_together(topology in any_topology()) {
        let order = topology.order();
        prop_assert_eq!(order.len(), topology.cpus().len());
        prop_assert_eq!(&order.iter().copied().collect::<CpuSet>(), topology.cpus());
        for kind in topology.kinds() {
            for object in &topology.parts.objects {
                let positions: Vec<usize> = (0..order.len())
                    .filter(|position| object.cpus.contains(order[*position]) && kind.contains(order[*position]))
                    .collect();
                prop_assert!(positions.windows(2).all(|pair| pair[1] == pair[0] + 1), "{object:?}");
            }
        }
    }

    #[test]
    fn a_topology_survives_serde(topology in any_topology()) {
        let json = serde_json::to_string(&topology).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Topology>(&json).unwrap(), &topology);
        // Postcard is not self-describing.
        let bytes = postcard::to_stdvec(&topology).unwrap();
        prop_assert_eq!(postcard::from_bytes::<Topology>(&bytes).unwrap(), topology);
    }

    #[test]
    fn any_topology_can_be_drawn(topology in any_topology()) {
        let drawing = topology.to_string();
        prop_assert!(drawing.starts_with("machine: "));
        for package in topology.objects(Level::Package) {
            let name = format!("package {}", package.id.unwrap());
            prop_assert!(drawing.contains(&name));
        }
    }
}

#[test]
fn a_contradictory_group_is_left_out_with_a_warning() {
    let cpus = set("0-3");
    let topology = Topology::from(Parts {
        cpus: cpus.clone(),
        objects: vec![
            Object::new(Level::Package, Some(0), set("0-1")),
            Object::new(Level::Package, Some(1), set("2-3")),
            Object::new(Level::L3, None, set("1-2")),
        ],
        ..Parts::default()
    });
    assert_eq!(topology.counts().l3_caches, 0);
    assert_eq!(topology.counts().packages, 2);
    assert_eq!(topology.warnings().len(), 1);
    assert_eq!(topology.order(), [0, 1, 2, 3]);
}

#[test]
fn nodes_below_a_cache_nest_like_caches_below_a_node() {
    let cpus = set("0-3");
    let topology = Topology::from(Parts {
        cpus: cpus.clone(),
        objects: vec![
            Object::new(Level::L3, None, cpus.clone()),
            Object::new(Level::NumaNode, Some(0), set("0,2")),
            Object::new(Level::NumaNode, Some(1), set("1,3")),
        ],
        ..Parts::default()
    });
    assert_eq!(topology.order(), [0, 2, 1, 3]);
    assert_eq!(topology.span(&set("0,2")), Level::NumaNode);
    assert_eq!(topology.span(&set("0,1")), Level::L3);
    assert_eq!(topology.touched(&set("0,1"), Level::NumaNode), 2);
}

#[test]
fn the_span_is_the_closest_shared_level() {
    let topology = Shape { packages: 2, nodes: 2, caches: 2, cores: 2, threads: 2 }.numbered();
    for (cpus, span) in [
        ("0", Level::Core),
        ("0-1", Level::Core),
        ("0,2", Level::L3),
        ("3-4", Level::NumaNode),
        ("7-8", Level::Package),
        ("0,31", Level::Machine),
    ] {
        assert_eq!(topology.span(&set(cpus)), span, "{cpus}");
    }
}

#[test]
fn a_quota_caps_the_parallelism_at_no_less_than_one() {
    for (quota_us, expected) in [(250_000, 2), (50_000, 1), (10_000_000, 4)] {
        let topology = Topology::from(Parts {
            cpus: set("0-3"),
            quota: Some(CpuQuota { quota_us, period_us: 100_000 }),
            ..Parts::default()
        });
        assert_eq!(topology.available_parallelism(), expected);
    }
    assert_eq!(CpuQuota { quota_us: 250_000, period_us: 100_000 }.to_string(), "2.500 cpus");
}
