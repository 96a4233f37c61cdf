//! The command `brigade`: runs a list of commands as jobs on pinned cores.
//!
//! `arguments` defines the options, `input` reads jobs, and `run` hands them to [`brigade::runner`]
//! and passes its events to the log, the results directory, the screen and the report.

#![forbid(unsafe_code)]

mod arguments;
mod cluster;
mod completions;
mod confine;
mod dead;
mod defaults;
mod descriptors;
mod each;
mod gnu;
mod input;
mod line;
mod live;
mod log;
mod manual;
mod node;
mod parallel;
mod patient;
mod pipe;
mod printer;
mod remote;
mod report;
mod run;
mod screen;
mod sem;
mod separator;
mod template;
mod top;
mod topology;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};
use miette::{IntoDiagnostic, Report, WrapErr};

use arguments::{Arguments, Command};

/// The exit status if the run itself fails; GNU parallel uses the same.
const RUN_FAILED: u8 = 255;

brigade::__before_main!(descriptors::look_for_stdout);

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
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if let Some(name) = words.first().and_then(|program| called_as(program)) {
        words.splice(..1, ["brigade", name].map(OsString::from));
    }
    if words.get(1..3).is_some_and(|words| words == ["parallel", "--semaphore"]) {
        words.splice(1..3, [OsString::from("sem")]);
    }
    let subcommand = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let words = match (subcommand, command.find_subcommand(subcommand)) {
        ("run", Some(run)) => {
            defaults::inserted(separator::inserted(words, run, separator::is_program))?
        }
        ("parallel", Some(parallel)) => parallel::words(words, parallel)?,
        _ => words,
    };
    Arguments::try_parse_from(words).map_err(|error| cut(gnu::explain(error, &command)))
}

/// Cuts the words that an error repeats: an argument may have megabytes.
fn cut(mut error: clap::Error) -> clap::Error {
    const MAX: usize = 100;
    for kind in [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand]
    {
        if let Some(ContextValue::String(word)) = error.get(kind)
            && word.chars().count() > MAX
        {
            let word = format!("{word:.MAX$}…");
            error.insert(kind, ContextValue::String(word));
            // It repeats the word.
            error.remove(ContextKind::Suggested);
        }
    }
    error
}

/// Returns the subcommand that a link with the name of another program stands for.
fn called_as(program: &OsStr) -> Option<&'static str> {
    let name = Path::new(program).file_name()?;
    ["parallel", "sem"].into_iter().find(|subcommand| name == *subcommand)
}

fn execute(command: Command) -> Result<u8, Report> {
    log::install(&command)?;
    match command {
        Command::Run(run) => return run::run(&run),
        Command::Sem(sem) => return sem::run(&sem),
        Command::Parallel(parallel) => return parallel::run(*parallel),
        Command::Sandbox => confine::show()?,
        Command::Topology => topology::show()?,
        Command::Node(node) => return node::run(&node),
        Command::Cluster(command) => return cluster::run(&command),
        Command::ServeCommands { host, sandbox, limits } => {
            remote::serve(host, &sandbox, limits);
            return Err(miette::miette!(
                "this command is started by `brigade node --allow-commands`"
            ));
        }
        Command::Top { address, queue, login } if top::is_cluster(&address) => {
            return top::show_cluster(&address, &queue, &login);
        }
        Command::Top { address, .. } => return top::show(&address),
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
