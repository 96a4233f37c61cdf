//! SHA-256 of every file below some folders, computed in worker processes, in the format of `sha256sum`.
//!
//! ```sh
//! cargo run --release -p brigade --example checksum -- /usr/share > checksums.txt
//! sha256sum -c --quiet checksums.txt
//! ```
//!
//! The walk is lazy and a bounded window of tasks is under way, so memory does not grow with the tree. Output is in the
//! order of the walk, whatever the workers do.

#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "a command talks to its user")]

mod digest;
mod output;
mod report;
mod walk;

use std::collections::VecDeque;
use std::error::Error;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use brigade::{Handle, Pool, TaskError};
use clap::Parser;

use digest::{Digested, Job, ReadFailure, digest};
use output::Output;
use report::Report;
use walk::{Found, Walk};

/// Prints the SHA-256 of every regular file below the given folders, in a form that `sha256sum -c` accepts.
///
/// Each file is read and digested by a worker process. A worker that dies costs the file it was reading and nothing
/// else. Exit status: 0 when every file was digested, 1 when some were not, 2 when it could not work at all.
#[derive(Debug, Parser)]
#[command(name = "checksum")]
struct Arguments {
    /// Folders and files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Worker processes; as many as there are usable cores unless given.
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// How often a file is tried again when its worker dies.
    #[arg(long, value_name = "N", default_value_t = 0)]
    retries: u32,
    /// Kill the worker (SIGKILL) that meets a path with this text in it, at every try: to see what a crash costs.
    #[arg(long, value_name = "SUBSTRING")]
    crash_on: Option<String>,
    /// One JSON object for each file on stdout, and the summary as one on stderr.
    #[arg(long)]
    json: bool,
}

/// Files under way for each worker: enough that no worker waits for the walk or the output.
const FILES_PER_WORKER: usize = 64;

fn main() -> ExitCode {
    brigade::init();
    let arguments = Arguments::parse();
    if std::env::var_os("RUST_LOG").is_some() {
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
    }
    match run(&arguments) {
        Ok(report) => ExitCode::from(u8::from(report.failures() > 0)),
        // Whoever read our output has seen enough.
        Err(error) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("checksum: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let mut builder = Pool::builder().name("checksum");
    if let Some(workers) = arguments.workers {
        builder = builder.workers(workers);
    }
    let pool = builder.build()?;
    let task = pool.task(digest).retries(arguments.retries);
    let window = pool.workers() * FILES_PER_WORKER;

    let begin = Instant::now();
    let mut output = Output::new(arguments.json, io::stderr().is_terminal());
    let mut report = Report::default();
    let mut walk = Walk::new(arguments.paths.clone());
    let mut under_way = VecDeque::new();
    loop {
        while under_way.len() < window {
            match walk.next() {
                Some(Found::File(path)) => {
                    let job = Job::new(&path, arguments.crash_on.as_deref());
                    under_way.push_back((path, Ok(task.submit(job)?)));
                }
                Some(Found::Unreadable(path, failure)) => under_way.push_back((path, Err(failure))),
                Some(Found::Special) => report.special += 1,
                None => break,
            }
        }
        let Some((path, task)) = under_way.pop_front() else { break };
        match outcome(task) {
            Ok(digested) => {
                report.digested(digested.bytes);
                output.digested(&path, &digested)?;
            }
            Err(failure) => {
                report.failed(&failure);
                output.failed(&path, &failure)?;
            }
        }
        output.progress(&report);
    }
    output.finish()?;
    report.restarts = pool.worker_restarts();
    report.seconds = begin.elapsed().as_secs_f64();
    pool.shutdown()?;
    eprintln!("{}", if arguments.json { report.to_json() } else { report.to_string() });
    Ok(report)
}

/// Why a file has no digest.
enum Failure {
    /// It could not be read.
    Read(ReadFailure),
    /// The task failed: most likely its worker died.
    Task(TaskError),
}

type Submitted = Result<Handle<Result<Digested, ReadFailure>>, ReadFailure>;

fn outcome(task: Submitted) -> Result<Digested, Failure> {
    task.map_err(Failure::Read)?.wait().map_err(Failure::Task)?.map_err(Failure::Read)
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
