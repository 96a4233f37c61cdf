//! The command `brigade`: runs a list of commands as jobs on pinned cores.
//!
//! `arguments` defines the options, `input` reads jobs, `run` hands them to [`brigade::runner`] and passes what happens to
//! the log, the folder of results, the screen and the report.

#![forbid(unsafe_code)]

mod arguments;
mod clock;
mod descriptors;
mod input;
mod joblog;
mod line;
mod printer;
mod record;
mod report;
mod results;
mod run;
mod screen;
mod template;
mod topology;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use miette::{IntoDiagnostic, Report};

use arguments::{Arguments, Command};

/// The run itself was not possible, as GNU parallel says it.
const IMPOSSIBLE: u8 = 255;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are errors to clap, but none to the user.
            let code = if error.use_stderr() { IMPOSSIBLE } else { 0 };
            let _ = error.print();
            return code.into();
        }
    };
    match carry_out(arguments.command) {
        Ok(code) => code.into(),
        Err(report) => {
            let _ = writeln!(io::stderr(), "{report:?}");
            IMPOSSIBLE.into()
        }
    }
}

fn carry_out(command: Command) -> Result<u8, Report> {
    match command {
        Command::Run(run) => return run::run(&run),
        Command::Topology => topology::show()?,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "brigade", &mut script);
            io::stdout().write_all(&script).into_diagnostic()?;
        }
        Command::Man => manual(&mut io::stdout().lock()).into_diagnostic()?,
    }
    Ok(0)
}

/// The pages of the command and of `run`, one after the other.
fn manual(writer: &mut impl Write) -> io::Result<()> {
    let command = Arguments::command();
    clap_mangen::Man::new(command.clone()).render(writer)?;
    if let Some(run) = command.find_subcommand("run") {
        clap_mangen::Man::new(run.clone().name("brigade-run")).render(writer)?;
    }
    Ok(())
}
