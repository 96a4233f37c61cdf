//! Measures Brigade against Python's `ProcessPoolExecutor` in one run: `cargo xtask bench`.
//!
//! The two take turns, so that a noisy machine disturbs both; the table shows medians over the rounds, the spread, and
//! the ratio. Bare times of a shared machine mean little.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "the table is this program's output")]

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use brigade::Pool;
use clap::Parser;
use serde::Deserialize;

/// Takes turns with the peers and prints a table.
#[derive(Debug, Parser)]
struct Arguments {
    /// How often each contestant is measured.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Worker processes of each pool.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// No-op tasks submitted one by one, for Brigade.
    #[arg(long, default_value_t = 500_000)]
    tasks: usize,
    /// The same for the peer, which is slower.
    #[arg(long, default_value_t = 10_000)]
    peer_tasks: usize,
    /// Tasks with one outstanding at a time.
    #[arg(long, default_value_t = 2_000)]
    round_trips: usize,
}

/// What one contestant reached in one round.
#[derive(Debug, Deserialize)]
struct Figures {
    version: String,
    tasks_per_second: f64,
    round_trip_seconds: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    brigade::init();
    let arguments = Arguments::parse();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        ours.push(measure_brigade(&arguments)?);
        theirs.push(measure_futures_pool(&arguments)?);
    }
    println!(
        "| {} workers, {} rounds, median (lowest to highest) | Brigade {} | concurrent.futures {} | ratio |",
        arguments.workers, arguments.rounds, ours[0].version, theirs[0].version
    );
    println!("|---|---:|---:|---:|");
    print_row("no-op tasks submitted one by one, tasks/s", &ours, &theirs, |figures| {
        figures.tasks_per_second
    });
    print_row("round trip, one outstanding, µs", &ours, &theirs, |figures| {
        figures.round_trip_seconds * 1e6
    });
    Ok(())
}

fn noop((): ()) {}

fn measure_brigade(arguments: &Arguments) -> Result<Figures, Box<dyn Error>> {
    let pool = Pool::builder().workers(arguments.workers).build()?;
    pool.warm_up()?;
    for outcome in pool.map(noop, std::iter::repeat_n((), 100)) {
        outcome?;
    }
    let begin = Instant::now();
    let handles: Vec<_> =
        (0..arguments.tasks).map(|_| pool.submit(noop, ())).collect::<Result<_, _>>()?;
    for handle in handles {
        handle.wait()?;
    }
    let tasks_per_second = as_float(arguments.tasks) / begin.elapsed().as_secs_f64();
    let mut trips = Vec::with_capacity(arguments.round_trips);
    for _ in 0..arguments.round_trips {
        let begin = Instant::now();
        pool.submit(noop, ())?.wait()?;
        trips.push(begin.elapsed().as_secs_f64());
    }
    pool.shutdown()?;
    let round_trip_seconds = median(&mut trips);
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Ok(Figures { version, tasks_per_second, round_trip_seconds })
}

fn measure_futures_pool(arguments: &Arguments) -> Result<Figures, Box<dyn Error>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/futures_pool.py");
    let output = Command::new("python3")
        .arg(script)
        .args(
            [arguments.peer_tasks, arguments.round_trips, arguments.workers].map(|n| n.to_string()),
        )
        .output()
        .map_err(|error| format!("failed to start python3, which runs the peer: {error}"))?;
    if !output.status.success() {
        return Err(format!("the peer failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn print_row(name: &str, ours: &[Figures], theirs: &[Figures], figure: impl Fn(&Figures) -> f64) {
    let collect = |figures: &[Figures]| figures.iter().map(&figure).collect::<Vec<f64>>();
    let (mut ours, mut theirs) = (collect(ours), collect(theirs));
    let (our_median, their_median) = (median(&mut ours), median(&mut theirs));
    let ratio = (our_median / their_median).max(their_median / our_median);
    println!(
        "| {name} | {} | {} | {ratio:.1}x |",
        cell(our_median, &ours),
        cell(their_median, &theirs)
    );
}

fn cell(median: f64, sorted: &[f64]) -> String {
    let digits = if median < 100.0 { 2 } else { 0 };
    format!("{median:.digits$} ({:.digits$} to {:.digits$})", sorted[0], sorted[sorted.len() - 1])
}

/// Sorts, and takes the middle.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn as_float(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::MAX, f64::from)
}
