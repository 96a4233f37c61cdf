//! `measure`: runs the sections in turn, and prints what they report.

mod costs;
mod plain;
mod pools;
pub(crate) mod section;
mod table;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use brigade_sys::process::self_command;

use crate::figures::{Figures, Measured, Outcome};
use crate::machine;
use section::Section;

/// The command line of `measure`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Seconds for all sections together.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(5..=86_400))]
    seconds: u32,
    /// Measure only these sections.
    #[arg(long, value_delimiter = ',', value_enum)]
    only: Vec<Section>,
    /// File for all figures, as JSON; `simulate` reads it.
    #[arg(long)]
    json: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome<()> {
    let mut figures =
        Figures { facts: machine::facts(), cores: machine::cores()?, ..Figures::default() };
    figures.facts.insert("seconds".to_owned(), arguments.seconds.to_string());
    println!("{} cores", figures.cores);
    for (name, value) in &figures.facts {
        println!("{name}: {value}");
    }
    let chosen = |section: &&Section| arguments.only.is_empty() || arguments.only.contains(section);
    let sections: Vec<Section> = Section::ALL.iter().filter(chosen).copied().collect();
    let begin = Instant::now();
    for (index, section) in sections.iter().enumerate() {
        let left = f64::from(arguments.seconds) - begin.elapsed().as_secs_f64();
        let weights: f64 = sections[index..].iter().map(|section| section.weight()).sum();
        let seconds = left.max(1.0) * section.weight() / weights;
        println!();
        if let Err(error) = measure(*section, seconds, &mut figures) {
            println!("{} failed: {error}", section.name());
            figures.missing.insert(section.name(), error.to_string());
        }
    }
    println!("\n{:.0} seconds", begin.elapsed().as_secs_f64());
    match &arguments.json {
        Some(path) => figures.write(path),
        None => Ok(()),
    }
}

/// Runs a section in a process of its own, and prints its figures as they come.
fn measure(section: Section, seconds: f64, figures: &mut Figures) -> Outcome<()> {
    let mut command = self_command();
    command.args(["section", &section.name(), &seconds.to_string()]).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let output = child.stdout.take().ok_or("the section has no output")?;
    let mut table = table::Table::new(section, figures.cores);
    for line in BufReader::new(output).lines() {
        let measured: Measured = serde_json::from_str(&line?)?;
        table.print(&measured);
        figures.measured.push(measured);
    }
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(format!("its process ended: {status}").into()) }
}
