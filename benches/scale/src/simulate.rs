//! `simulate`: predicts from a model of one pool which share of the cores tasks get.

mod clock;
mod costs;
mod pool;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use clap::value_parser;

use crate::figures::{Figures, Outcome};
use costs::{Costs, Topology};
use pool::{Limit, Look, Prediction, Setting, simulate};

/// The command line of `simulate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// File of `scale --json` with the costs of operations [default: those of two cores of an AMD
    /// EPYC].
    #[arg(long)]
    from: Option<PathBuf>,
    /// Predict what this file of `scale --json` has measured, with its costs, and print both.
    #[arg(long, conflicts_with_all = ["from", "cores", "workers", "submitters", "topology"])]
    against: Option<PathBuf>,
    /// Numbers of cores.
    #[arg(long, value_delimiter = ',', default_values_t = [16, 64, 256], value_parser = value_parser!(u32).range(1..=4096))]
    cores: Vec<u32>,
    /// Number of workers [default: as many as cores].
    #[arg(long, value_parser = value_parser!(u32).range(1..=4096))]
    workers: Option<u32>,
    /// Numbers of threads that submit.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 16], value_parser = value_parser!(u32).range(1..=1024))]
    submitters: Vec<u32>,
    /// Distances between the cores.
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = [Topology::OneCache, Topology::ManyCaches, Topology::TwoSockets])]
    topology: Vec<Topology>,
    /// The way in which the host finds workers with news.
    #[arg(long, value_enum, default_value_t = Look::Slots)]
    look: Look,
    /// Tasks that are submitted under one lock.
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u32).range(1..=1024))]
    batch: u32,
    /// Nanoseconds that waking a thread or a worker takes its waker [default: as measured].
    #[arg(long)]
    wake: Option<u32>,
    /// Seed of the variation of tasks; the same seed gives the same figures.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Times of a task, in microseconds.
const GRAINS: [u32; 6] = [1, 3, 10, 30, 100, 300];

pub(crate) fn run(arguments: &Arguments) -> Outcome<()> {
    if let Some(path) = &arguments.against {
        return compare(&Figures::read(path)?, arguments);
    }
    let figures = arguments.from.as_deref().map(Figures::read).transpose()?;
    let costs = arguments.costs(figures.as_ref());
    println!("{costs:.0?}\n");
    println!(
        "Share of the cores that tasks get if they are submitted one by one, and what is used up \
         first: the cores themselves (-), the lock, the threads that submit or wake workers, or \
         whoever collects outcomes."
    );
    let heads: Vec<String> = GRAINS.iter().map(|micros| format!("{micros} µs")).collect();
    println!("\n| topology | workers | submitters | no-ops | {} |", heads.join(" | "));
    println!("|---|---:|---:|---:|{}", "---:|".repeat(GRAINS.len()));
    for &topology in &arguments.topology {
        for &cores in &arguments.cores {
            for &submitters in &arguments.submitters {
                let workers = arguments.workers.unwrap_or(cores);
                let predict = |micros| {
                    let setting = arguments.setting(cores, workers, submitters, micros);
                    simulate(setting, &costs.on(topology))
                };
                let cells: Vec<String> = GRAINS.iter().map(|grain| cell(predict(*grain))).collect();
                let noops = predict(0).per_second / 1e6;
                println!(
                    "| {} | {workers} | {submitters} | {noops:.1} M/s | {} |",
                    name(topology),
                    cells.join(" | ")
                );
            }
        }
    }
    let heads: Vec<String> = arguments
        .cores
        .iter()
        .map(|cores| {
            format!("{:.1} µs for {cores} workers", costs.map_item * f64::from(*cores) / 1e3)
        })
        .collect();
    println!(
        "\nA map needs {:.0} ns for an item on the thread that iterates, so all cores are busy with \
         items of {}.",
        costs.map_item,
        heads.join(", ")
    );
    Ok(())
}

impl Arguments {
    fn costs(&self, figures: Option<&Figures>) -> Costs {
        let costs = figures.map(Costs::of).unwrap_or_default();
        Costs { wake: self.wake.map_or(costs.wake, f64::from), ..costs }
    }

    fn setting(&self, cores: u32, workers: u32, submitters: u32, micros: u32) -> Setting {
        let (look, batch, seed) = (self.look, self.batch, self.seed);
        let grain = 1e3 * f64::from(micros);
        Setting { cores, workers, submitters, grain, batch, look, most_tasks: MAX_TASKS, seed }
    }
}

fn name(topology: Topology) -> &'static str {
    match topology {
        Topology::OneCache => "one cache",
        Topology::ManyCaches => "many caches",
        Topology::TwoSockets => "two sockets",
    }
}

fn cell(prediction: Prediction) -> String {
    let limit = match prediction.limit {
        _ if prediction.share >= BUSY => "-",
        Limit::Cores => "-",
        Limit::Lock => "lock",
        Limit::WakeUps => "wake-ups",
        Limit::Submitter => "submitter",
        Limit::Collector => "collector",
    };
    format!("{:.0} % {limit}", 100.0 * prediction.share)
}

/// Tasks of one run of the model.
const MAX_TASKS: u32 = 200_000;

/// From this share on, nothing is used up but the cores.
const BUSY: f64 = 0.95;

/// Prints what a file has measured beside what the model says.
fn compare(figures: &Figures, arguments: &Arguments) -> Outcome<()> {
    let costs = arguments.costs(Some(figures));
    println!("{costs:.0?}\n\n{} cores, tasks one by one\n", figures.cores);
    println!("| workers | submitters | task | measured | fastest lap | predicted | of that lap |");
    println!("|---:|---:|---:|---:|---:|---:|---:|");
    let mut errors = Vec::new();
    for case in figures.cases("each") {
        let (workers, submitters) = (case.workers, case.submitters);
        let setting = arguments.setting(figures.cores, workers, submitters, case.micros);
        let prediction = simulate(setting, &costs);
        let ratio = prediction.per_second / case.range.1;
        let text = |rate: f64| match case.share(rate, figures.cores) {
            Some(share) => format!("{:.1} %", 100.0 * share),
            None => format!("{:.2} M/s", rate / 1e6),
        };
        println!(
            "| {workers} | {submitters} | {} µs | {} | {} | {} | {ratio:.2} |",
            case.micros,
            text(case.per_second),
            text(case.range.1),
            text(prediction.per_second),
        );
        errors.push((ratio.ln().abs(), ratio));
    }
    errors.sort_by(|one, two| one.0.total_cmp(&two.0));
    let (Some(median), Some(worst)) = (errors.get(errors.len() / 2), errors.last()) else {
        return Err("the file has no cases of the section `each`: measure it with \
                    `scale --only costs,each,map --json FILE`"
            .into());
    };
    println!("\nmedian ratio of an error: {:.2}; the worst: {:.2}", median.1, worst.1);
    Ok(())
}
