//! The command `brigade`: runs a list of commands as jobs on pinned cores.
//!
//! `arguments` defines the options, `input` reads jobs, and `run` hands them to [`brigade::runner`]
//! and passes its events to the log, the results directory, the screen and the report.

#![forbid(unsafe_code)]

mod arguments;
mod completions;
mod descriptors;
mod gnu;
mod input;
mod line;
mod live;
mod manual;
mod pipe;
mod printer;
mod report;
mod run;
mod screen;
mod separator;
mod template;
mod top;
mod topology;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};
use miette::{IntoDiagnostic, Report, WrapErr};

use arguments::{Arguments, Command};

/// The exit status if the run itself fails; GNU parallel uses the same.
const RUN_FAILED: u8 = 255;

fn main() -> ExitCode {
    let arguments = match parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Clap reports help and version as errors; for the user they are not.
            let code = if error.use_stderr() { RUN_FAILED } else { 0 };
            let _ = error.print();
            return code.into();
        }
    };
    match execute(arguments.command) {
        Ok(code) => code.into(),
        Err(report) => {
            let _ = writeln!(io::stderr(), "{report:?}");
            RUN_FAILED.into()
        }
    }
}

fn parse() -> Result<Arguments, clap::Error> {
    let mut command = Arguments::command();
    // Completes the definition, as parsing does.
    command.build();
    let words = std::env::args_os().collect();
    let words = match command.find_subcommand("run") {
        Some(run) => separator::inserted(words, run, separator::is_program),
        None => words,
    };
    Arguments::try_parse_from(words).map_err(|error| cut(gnu::explain(error, &command)))
}

/// Cuts the words that an error repeats: an argument may have megabytes.
fn cut(mut error: clap::Error) -> clap::Error {
    const LONGEST: usize = 100;
    for kind in [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand]
    {
        if let Some(ContextValue::String(word)) = error.get(kind)
            && word.chars().count() > LONGEST
        {
            let word = format!("{word:.LONGEST$}…");
            error.insert(kind, ContextValue::String(word));
            // It repeats the word.
            error.remove(ContextKind::Suggested);
        }
    }
    error
}

fn execute(command: Command) -> Result<u8, Report> {
    match command {
        Command::Run(run) => return run::run(&run),
        Command::Topology => topology::show()?,
        Command::Top { address } => return top::show(&address),
        Command::Completions { shell } => {
            io::stdout().write_all(&completions::script(shell)).into_diagnostic()?;
        }
        Command::Man { folder: None } => {
            manual::print(&mut io::stdout().lock(), Arguments::command()).into_diagnostic()?;
        }
        Command::Man { folder: Some(folder) } => {
            manual::write_to(&folder, Arguments::command())
                .into_diagnostic()
                .wrap_err("cannot write a manual page")?;
        }
    }
    Ok(0)
}
