//! Draws this machine or a recorded one.
//!
//! `cargo run -p brigade-cores --example topology [FOLDER | RECORDING.json]`

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::path::PathBuf;

use brigade_cores::{Recording, Topology};

fn main() -> Result<(), Box<dyn Error>> {
    let topology = match std::env::args_os().nth(1).map(PathBuf::from) {
        None => Topology::discover()?,
        Some(folder) if folder.is_dir() => Topology::discover_in(folder)?,
        Some(file) => {
            let recording: Recording = serde_json::from_slice(&std::fs::read(file)?)?;
            Topology::replay(&recording)?
        }
    };
    print!("{topology}");
    println!("{}", serde_json::to_string(&topology.counts())?);
    Ok(())
}
