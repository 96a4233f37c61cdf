//! Maintainer commands: `cargo xtask <command>`. This file only dispatches; each command has a file
//! of its own.
//!
//! There are few dependencies on purpose: everybody who works on the project compiles this first.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to its user")]

mod asan;
mod bench;
mod chaos;
mod checkout;
mod crashes;
mod cross;
mod escape;
mod examples;
mod features;
mod invocation;
mod linted;
mod loom;
mod packages;
mod programs;
mod quick;
mod scale;
mod seeded;
mod step;
mod test;
mod tidy;
mod tokens;
mod tools;
mod usage;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  test [--keep-going] [--budget]
                    run everything that must pass before a push; --keep-going does not stop at the
                    first step that fails, --budget fails if too much is compiled
  test --quick      lint, run the unit tests and one test of each promise: before a commit
  test CRATE        lint and test one crate: while you work on it
  ci [--keep-going] [job ...]
                    run also what `test` leaves out, or only some of its jobs
  tidy [--bless]    check the rules that no compiler checks; --bless records a changed wire
                    protocol
  bench [arguments]
                    measure Brigade and its peers in one run; --help lists the arguments
  scale [--build-only] [arguments]
                    measure how a pool scales with the cores of this machine; --build-only prints
                    the path of the program, which runs on others; --help lists the arguments
  simulate [arguments]
                    predict from a model of one pool how it scales; --help lists the arguments
  stress [--seed S] [arguments]
                    inject random faults into real processes; prints the command that repeats
                    the run
  fuzz [--seed S] [arguments]
                    run tasks that overwrite everything their workers can reach; likewise
  chaos --cluster [--seed S] [--tasks N]
                    run 100,000 tasks on ten nodes in network namespaces, while links are cut and
                    nodes, servers and the client are killed
  loom              check the models of atomics and locks in every interleaving
  escape            try to escape from the sandbox of a worker in every way that is known
  examples          run the examples, and compare what they print with what they show
  programs          run programs of everyday in each sandbox of the command, and print a table
  cross [--brief] [part ...]
                    build and run the tests for other processors and C libraries
  crashes           check crash reports of builds as programs are shipped
  asan              run the unit tests of the crates with raw memory under AddressSanitizer";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let arguments: Vec<String> = arguments.collect();
    let outcome = match command.as_str() {
        "test" => test::run(&arguments),
        "ci" => test::ci(&arguments),
        "tidy" => tidy::run(&arguments),
        "stress" => seeded::STRESS.run(&arguments),
        "fuzz" => seeded::FUZZ.run(&arguments),
        "chaos" => chaos::run(&arguments),
        "bench" => bench::run(&arguments),
        "scale" => scale::measure(&arguments),
        "simulate" => scale::simulate(&arguments),
        "loom" => loom::run(&arguments),
        "examples" => examples::run(&arguments),
        "programs" => programs::run(&arguments),
        "asan" => asan::run(&arguments),
        "crashes" => crashes::run(&arguments),
        "cross" => cross::run(&arguments),
        "escape" => escape::run(&arguments),
        _ => Err(USAGE.to_owned()),
    };
    outcome.unwrap_or_else(|message| {
        eprintln!("{message}");
        ExitCode::FAILURE
    })
}
