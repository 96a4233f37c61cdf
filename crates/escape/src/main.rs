//! Attempts to escape from a sandbox, by code that knows how: raw system calls from inside a task.
//!
//! Each attempt runs in a worker of a pool with a strict sandbox and limits, among tasks of others.
//! It is refused if it says so itself, or if its worker ends for it. Then the rest has to be as
//! before: the secret file, the host, the worker of another pool, and the next task of this one.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a program; the table is its output")]

mod attempt;
mod bombs;
mod files;
mod kernel;
mod levels;
mod processes;
mod protocol;
mod run;
mod streams;
mod targets;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use brigade::Link;
use clap::Parser;

use crate::attempt::Verdict;
use crate::run::Settings;
use crate::targets::{SECRET, SECRET_VARIABLE};

/// Tries to leave a strict sandbox in every way that is known, and prints which layer refuses it.
#[derive(Debug, Parser)]
struct Arguments {
    /// The link between host and workers.
    #[arg(long, default_value = "ring", value_parser = ["ring", "ipc"])]
    link: String,
    /// Runs as a user without rights.
    #[arg(long)]
    as_nobody: bool,
    /// The workers have namespaces of their own.
    #[arg(long)]
    isolate: bool,
    /// Prints only the attempts that are not refused, and the totals.
    #[arg(long)]
    brief: bool,
    /// Runs only the attempts whose name has this part.
    #[arg(long, default_value = "")]
    only: String,
}

/// The user and group without rights, on every Linux.
const NOBODY: u32 = 65534;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    brigade::init();
    let arguments = Arguments::parse();
    if std::env::var_os(SECRET_VARIABLE).is_none() {
        // The environment of this process is what workers must not see.
        let mut again = Command::new(std::env::current_exe()?);
        again.args(std::env::args_os().skip(1)).env(SECRET_VARIABLE, SECRET);
        if arguments.as_nobody {
            again.uid(NOBODY).gid(NOBODY).current_dir("/");
        }
        return Err(again.exec().into());
    }
    let link = if arguments.link == "ipc" { Link::Ipc } else { Link::Ring };
    let Arguments { isolate, only, .. } = arguments;
    let summary = run::run(&Settings { link, isolate, only })?;
    for (name, end) in &summary.ends {
        match end {
            Verdict::Refused(_) if arguments.brief => {}
            Verdict::Refused(layer) => println!("refused  {name:<52} {layer}"),
            Verdict::Escaped(how) => println!("ESCAPED  {name:<52} {how}"),
        }
    }
    println!("{} attempts, {} escaped", summary.ends.len(), summary.escaped());
    Ok(if summary.escaped() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
