//! Measures one section of procspawn: `procspawn-peer SECTION LOAD`. Prints one JSON object.
//!
//! Figures and loads are the same as in Brigade's own measurements in `benches/src/ours`.

#![forbid(unsafe_code)]

mod callers;
mod meeting;
mod sections;
mod tasks;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

/// The fields of the load that are needed here.
#[derive(Debug, Deserialize)]
struct Load {
    workers: usize,
    throughput_seconds: f64,
    laps: usize,
    trips: usize,
    trip_seconds: f64,
    grain_micros: Vec<u64>,
    grain_seconds: f64,
    callers: Vec<usize>,
    caller_seconds: f64,
    peer_payload: usize,
    payload_budget: usize,
    starts: usize,
    crashes: usize,
    fresh_tasks: usize,
    list: PathBuf,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    version: &'static str,
    figures: BTreeMap<String, f64>,
    missing: BTreeMap<String, String>,
    checksum: Option<String>,
}

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    procspawn::init();
    // Exit with the run, however it ends.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let parent = getppid().map(|parent| parent.as_raw_nonzero().get().to_string());
    if parent != std::env::var("BRIGADE_BENCH_PARENT").ok() {
        return Err("the run that started this process has ended".into());
    }
    let mut arguments = std::env::args().skip(1);
    let section = arguments.next().ok_or("no section")?;
    let load: Load = serde_json::from_str(&arguments.next().ok_or("no load")?)?;
    let mut report = Report { version: "1.0.2", ..Report::default() };
    if let Err(error) = sections::measure(&section, &load, &mut report) {
        report.missing.insert("*".to_owned(), error.to_string());
    }
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
