//! `cargo xtask simulate-cluster`: checks the sizes in docs/cluster.md by a simulation.
//!
//! The inputs are rates that were measured on two cores (docs/cluster.md, "Ten thousand nodes and a
//! million tasks a second"). The simulation is pure and seeded, so it prints the same table each
//! time, and a test compares it with the documentation.

mod engine;

use std::fmt::Write;
use std::process::ExitCode;

use engine::{Findings, Random, Source, Stage, System};

const SEED: u64 = 1;

/// Tasks a second, all queues together.
const TASKS: f64 = 1e6;

/// Simulated time. Queues that cannot keep up show it in less.
const SECONDS: f64 = 0.1;

/// Nodes, all queues together, and the workers of each.
const NODES: u32 = 10_000;
const WORKERS: u32 = 2;

/// Run time of a task.
const RUN: f64 = 0.010;

/// Time on the way of a task during which nobody works: wake-ups and loopback.
const WAY: f64 = 187e-6;

/// Batches of the same size, of which each is in one queue.
const BATCHES: u32 = 1_000;

/// A kind of message, and its cost in CPU time of servers.
struct Kind {
    name: &'static str,
    replicas: u32,
    /// Tasks in one message.
    items: u32,
    /// Of the server that leads the stream, which works on one message at a time. With three
    /// replicas about half of the time of all servers.
    leader: f64,
}

const SINGLE: Kind = Kind { name: "single tasks", replicas: 1, items: 1, leader: 21.5e-6 };
const SINGLE_R3: Kind = Kind { replicas: 3, leader: 36.5e-6, ..SINGLE };
const CHUNKS: Kind = Kind { name: "chunks of 64", replicas: 1, items: 64, leader: 55e-6 };
const CHUNKS_R3: Kind = Kind { replicas: 3, leader: 129e-6, ..CHUNKS };

/// The rows of the table: a kind, a number of queues, and whether batches are spread by a hash.
const ROWS: [(Kind, u32, bool); 11] = [
    (SINGLE, 20, false),
    (SINGLE, 25, false),
    (SINGLE, 25, true),
    (SINGLE, 40, true),
    (SINGLE_R3, 40, false),
    (SINGLE_R3, 50, false),
    (SINGLE_R3, 50, true),
    (SINGLE_R3, 80, true),
    (CHUNKS, 1, false),
    (CHUNKS_R3, 2, false),
    (CHUNKS_R3, 3, false),
];

#[expect(clippy::print_stdout, reason = "the table is what the user asked for")]
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if !arguments.is_empty() {
        return Err("usage: cargo xtask simulate-cluster".to_owned());
    }
    print!("{}", table());
    Ok(ExitCode::SUCCESS)
}

/// Returns the table in Markdown.
fn table() -> String {
    let mut table = String::from(
        "| replicas | messages | queues | spread | load of the busiest leader | in the queue, p50 | p99 | keeps up |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for (kind, queues, is_hashed) in &ROWS {
        let found = of_queues(kind, *queues, *is_hashed);
        // What waits at the end of the simulation is more than a queue holds by chance.
        let keeps_up = found.loads[0] < 0.99;
        let spread = if *is_hashed { "1,000 batches by a hash" } else { "even" };
        let time = |per_mille| {
            if keeps_up { micros(found.quantile(per_mille) - RUN) } else { "grows".to_owned() }
        };
        let _ = writeln!(
            table,
            "| {} | {} | {queues} | {spread} | {:.0} % | {} | {} | {} |",
            kind.replicas,
            kind.name,
            100.0 * found.loads[0],
            time(500),
            time(990),
            if keeps_up { "yes" } else { "no" },
        );
    }
    table
}

fn micros(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}

/// Simulates all queues. The loads are those of the busiest leader and of the busiest nodes.
fn of_queues(kind: &Kind, queues: u32, is_hashed: bool) -> Findings {
    let mut random = Random(SEED);
    let mut batches = vec![0_u32; queues as usize];
    for _ in 0..BATCHES {
        batches[random.below(queues)] += 1;
    }
    let messages = TASKS / f64::from(kind.items);
    let mut all = Findings::none(2);
    for batches in batches {
        let share = if is_hashed {
            f64::from(batches) / f64::from(BATCHES)
        } else {
            1.0 / f64::from(queues)
        };
        all.merge(of_queue(kind, messages * share, NODES / queues, &mut random));
    }
    all
}

/// Simulates a queue: its leader works on each task when it is submitted and delivered, and on its
/// outcome; in between, a worker of one of the nodes runs it.
fn of_queue(kind: &Kind, messages: f64, nodes: u32, random: &mut Random) -> Findings {
    let (leader, workers) = (0, 1);
    let half = Stage::Work { station: leader, time: kind.leader / 2.0 };
    // A node runs the items of a chunk in its workers, one after the other; here they are brief.
    let way = vec![
        half,
        Stage::Delay(WAY / 2.0),
        Stage::Work { station: workers, time: RUN },
        half,
        Stage::Delay(WAY / 2.0),
    ];
    System::new(&[1, nodes * WORKERS], way, Source::Poisson(messages)).run(SECONDS, random)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system with one station and random arrivals, which loads it with `load`.
    fn mean_wait(servers: u32, load: f64) -> f64 {
        let way = vec![Stage::Work { station: 0, time: 1.0 }];
        let rate = load * f64::from(servers);
        let system = System::new(&[servers], way, Source::Poisson(rate));
        let found = system.run(400_000.0 / rate, &mut Random(SEED));
        assert!((found.loads[0] - load).abs() < 0.01, "{found:?}");
        found.mean() - 1.0
    }

    /// M/D/1: the exact mean wait. M/D/c: the approximation of Cosmetatos, from the formula of
    /// Erlang.
    #[test]
    fn waits_agree_with_queueing_theory() {
        for load in [0.3, 0.5, 0.8] {
            let exact = load / (2.0 * (1.0 - load));
            let found = mean_wait(1, load);
            assert!((found / exact - 1.0).abs() < 0.05, "{load}: {found}, {exact}");
        }
        for (servers, load) in [(2, 0.7), (4, 0.8), (8, 0.8)] {
            let c = f64::from(servers);
            let offered = c * load;
            // The probability of a loss, and then of a wait, by recursion.
            let loss =
                (1..=servers).fold(1.0, |loss, n| offered * loss / (f64::from(n) + offered * loss));
            let delay = loss / (1.0 - load * (1.0 - loss));
            let exponential = delay / (c * (1.0 - load));
            let correction =
                1.0 + (1.0 - load) * (c - 1.0) * ((4.0 + 5.0 * c).sqrt() - 2.0) / (16.0 * load * c);
            let expected = exponential * correction / 2.0;
            let found = mean_wait(servers, load);
            assert!((found / expected - 1.0).abs() < 0.07, "{servers}: {found}, {expected}");
        }
    }

    /// Two cores for everything: servers, client and node. The simulation has no other costs than
    /// the CPU time that was measured, so it is an upper limit, and near it.
    #[test]
    fn the_measured_small_case_is_found_again() {
        let rate = |server: f64, others: f64, window| {
            let work = |time| Stage::Work { station: 0, time };
            let way = vec![work(server), work(others), Stage::Delay(WAY)];
            let system = System::new(&[2], way, Source::Window(window));
            system.run(0.5, &mut Random(SEED))
        };
        let single = rate(21.5e-6, 11e-6, 1_000).rate;
        assert!((50_500.0..54_300.0 * 1.25).contains(&single), "{single}");
        let replicated = rate(73e-6, 12e-6, 1_000).rate;
        assert!((19_800.0..25_300.0 * 1.05).contains(&replicated), "{replicated}");
        let alone = rate(21.5e-6, 11e-6, 1);
        let trip = alone.quantile(500);
        assert!((trip / 220e-6 - 1.0).abs() < 0.05, "{trip}");
    }

    #[test]
    fn a_queue_beyond_its_leader_grows() {
        let found = of_queue(&SINGLE, 60_000.0, 200, &mut Random(SEED));
        assert!(found.loads[0] > 0.99 && found.rate < 50_000.0, "{found:?}");
    }

    #[test]
    fn the_documentation_has_this_table() {
        let text = include_str!("../../docs/cluster.md");
        let table = table();
        assert!(text.contains(&table), "replace the table by\n{table}");
    }
}
