//! Maintainer commands: `cargo xtask <command>`. This file only dispatches; each command is one
//! file.
//!
//! There are no dependencies on purpose: everybody who works on the project compiles this first.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to its user")]

mod asan;
mod bench;
mod checkout;
mod ci;
mod invocation;
mod loom;
mod seeded;
mod step;
mod test;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  test              everything that must pass before a commit
  ci                the same as CI runs it: locked dependencies, no stop at the first failed test
  tidy [--bless]    the rules that no compiler checks; --bless records a changed wire protocol
  bench [arguments]
            measures Brigade against its peers in one run; --help tells the arguments
  stress [--seed S] [arguments]
                    random faults in real processes; prints the line that repeats the run
  fuzz [--seed S] [arguments]
                    tasks that scribble over all that their workers can reach; likewise
  loom              the model of the slot table under every interleaving
  asan              the unit tests of the crates with raw memory, under AddressSanitizer";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let arguments: Vec<String> = arguments.collect();
    let outcome = match command.as_str() {
        "test" => test::run(&arguments),
        "ci" => ci::run(&arguments),
        "tidy" => tidy::run(&arguments),
        "stress" => seeded::STRESS.run(&arguments),
        "fuzz" => seeded::FUZZ.run(&arguments),
        "bench" => bench::run(&arguments),
        "loom" => loom::run(&arguments),
        "asan" => asan::run(&arguments),
        _ => Err(USAGE.to_owned()),
    };
    outcome.unwrap_or_else(|message| {
        eprintln!("{message}");
        ExitCode::FAILURE
    })
}
