//! Tests of the model, without any measurement.

use super::costs::{Costs, Topology};
use super::pool::{Limit, Look, Prediction, Setting, simulate};
use crate::figures::{Case, Cost, Figures, Measured};

fn setting(cores: u32, workers: u32, submitters: u32, micros: f64) -> Setting {
    let grain = 1e3 * micros;
    Setting {
        cores,
        workers,
        submitters,
        grain,
        batch: 1,
        look: Look::Slots,
        most_tasks: 20_000,
        seed: 1,
    }
}

fn run(cores: u32, workers: u32, submitters: u32, micros: f64) -> Prediction {
    simulate(setting(cores, workers, submitters, micros), &Costs::default())
}

const GRAINS: [f64; 6] = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0];

#[test]
fn no_share_is_above_one_and_longer_tasks_get_more() {
    for (cores, workers) in [(2, 2), (2, 16), (16, 16)] {
        for submitters in [1, 4] {
            let mut last = 0.0;
            for micros in GRAINS {
                let share = run(cores, workers, submitters, micros).share;
                assert!((0.0..=1.0).contains(&share), "{cores} {workers} {submitters} {share}");
                // Runs differ by a percent with the number of tasks of a link at the end.
                assert!(share > last - 0.015, "{cores} {workers} {submitters} {micros}: {share}");
                last = share;
            }
        }
    }
}

#[test]
fn one_worker_takes_the_sum_of_all_tasks() {
    let costs = Costs::default();
    for micros in GRAINS {
        let serial = 1e9 / (1e3 * micros + costs.worker);
        let rate = run(4, 1, 1, micros).per_second;
        assert!((0.97..=1.001).contains(&(rate / serial)), "{micros} µs: {rate} of {serial}");
    }
}

#[test]
fn noops_of_one_submitter_take_the_sum_of_its_work() {
    let costs = Costs::default();
    let Costs { prepare, enter, submit, outcome, take, .. } = costs;
    let serial = 1e9 / (prepare + enter + submit + outcome + take);
    let rate = run(4, 2, 1, 0.0).per_second;
    assert!((0.85..=1.0).contains(&(rate / serial)), "{rate} of {serial}");
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let rate = |seed| {
        let setting = Setting { seed, ..setting(16, 16, 4, 10.0) };
        simulate(setting, &Costs::default()).per_second.to_bits()
    };
    assert_eq!(rate(7), rate(7));
    assert_ne!(rate(7), rate(8));
}

#[test]
fn what_is_used_up_first_is_named() {
    let limit = |workers, submitters, micros, wake| {
        let costs = Costs { wake, ..Costs::default() };
        simulate(setting(workers, workers, submitters, micros), &costs).limit
    };
    assert_eq!(limit(64, 1, 3.0, 0.0), Limit::Submitter);
    assert_eq!(limit(64, 1, 10.0, 4_000.0), Limit::WakeUps);
    assert_eq!(limit(64, 16, 3.0, 0.0), Limit::Lock);
    assert_eq!(limit(4, 1, 100.0, 2_000.0), Limit::Cores);
}

#[test]
fn words_batches_and_near_cores_help_noops() {
    let base = setting(256, 256, 1, 0.0);
    let rate = |setting, topology| simulate(setting, &Costs::default().on(topology)).per_second;
    let near = rate(base, Topology::OneCache);
    assert!(rate(base, Topology::TwoSockets) < 0.6 * near);
    assert!(rate(Setting { look: Look::Words, ..base }, Topology::OneCache) > 1.1 * near);
    assert!(rate(Setting { batch: 32, ..base }, Topology::OneCache) > 1.02 * near);
}

#[test]
fn costs_of_a_file_add_up_to_its_rate() {
    let cost = |of, nanoseconds| Measured::Cost(Cost { name: "submit".into(), of, nanoseconds });
    let (section, per_second, range) = ("each".to_owned(), 2e6, (2e6, 2e6));
    let noops = Case { section, workers: 2, submitters: 1, per_second, range, ..Case::default() };
    let measured = vec![cost(1, 200.0), cost(2, 250.0), Measured::Case(noops)];
    let costs = Costs::of(&Figures { cores: 4, measured, ..Figures::default() });
    let Costs { prepare, enter, submit, outcome, take, hand_over, .. } = costs;
    assert!((prepare + enter + submit - 200.0).abs() < 1e-6, "{costs:?}");
    assert!((prepare + enter + submit + outcome + take - 500.0).abs() < 1e-6, "{costs:?}");
    assert!((enter + submit + hand_over - 250.0).abs() < 1e-6, "{costs:?}");
}
