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

mod digest;
mod failure;
mod output;
mod report;
mod walk;

use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use brigade::{Handle, Pool, PoolError, Shutdown, TaskErrorKind};
use clap::Parser;

use digest::{Digested, Job, digest};
use failure::{Failure, ReadFailure};
use output::{Output, complain};
use report::Report;
use walk::{Found, Walk};

/// Prints the SHA-256 of every regular file below the given folders, in a form that `sha256sum -c` accepts.
///
/// Each file is read and digested by a worker process. A worker that dies costs the file it was reading and nothing
/// else. Symbolic links are followed only where they are given as arguments.
///
/// Exit status: 0 when every file was digested, 1 when some were not, 2 when it could not work at all.
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
    brigade::init(); // a worker process never gets beyond this line
    let arguments = Arguments::parse();
    if std::env::var_os("RUST_LOG").is_some() {
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
    }
    match run(&arguments) {
        Ok(report) => {
            complain(&if arguments.json { report.to_json() } else { report.to_string() });
            ExitCode::from(u8::from(report.failures() > 0))
        }
        // Whoever read our output has seen enough.
        Err(error) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("checksum: {}", chain(&*error)));
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let begin = Instant::now();
    let pool = start_pool(arguments.workers)?;
    let mut output = Output::new(arguments.json);
    let mut report = Report::default();
    let outcome = digest_all(&pool, arguments, &mut output, &mut report);
    // Also after a failure: the bar has to go, and the lines that are ready are good.
    let finished = output.finish();
    if let Err(error) = outcome.and(finished.map_err(Into::into)) {
        // Nobody wants the rest any more, so the pool need not run it; the failure is told, whatever this one says.
        let _ = pool.shutdown_with(Shutdown::Kill, Duration::ZERO);
        return Err(error);
    }
    pool.shutdown()?;
    report.end(begin.elapsed(), pool.worker_restarts());
    Ok(report)
}

fn start_pool(workers: Option<usize>) -> Result<Pool, PoolError> {
    let builder = Pool::builder().name("checksum");
    match workers {
        Some(workers) => builder.workers(workers).build(),
        None => builder.build(),
    }
}

/// Keeps a window of tasks under way and takes their outcomes in the order of the walk.
///
/// `pool.map` does the same in one line for those who do not need to know which input an error belongs to.
fn digest_all(
    pool: &Pool,
    arguments: &Arguments,
    output: &mut Output,
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    let task = pool.task(digest).retries(arguments.retries);
    let window = pool.workers() * FILES_PER_WORKER;
    let mut walk = Walk::new(arguments.paths.clone());
    let mut under_way = VecDeque::with_capacity(window);
    loop {
        while under_way.len() < window {
            match walk.next() {
                Some(Found::File(path)) => {
                    let job = Job::new(&path, arguments.crash_on.as_deref());
                    under_way.push_back((path, Ok(task.submit(job)?)));
                }
                Some(Found::Unreadable(path, failure)) => under_way.push_back((path, Err(failure))),
                Some(Found::Link) => report.links += 1,
                Some(Found::Special) => report.special += 1,
                None => break,
            }
        }
        let Some((path, submitted)) = under_way.pop_front() else { return Ok(()) };
        match outcome(submitted) {
            Ok(digested) => {
                report.digested(digested.bytes);
                output.digested(&path, &digested)?;
            }
            Err(Failure::Task(error)) if is_end_of_pool(&error.kind()) => return Err(error.into()),
            Err(failure) => {
                report.failed(failure.kind());
                output.failed(&path, &failure)?;
            }
        }
        output.progress(report);
    }
}

/// A file that was submitted, or why it could not even be.
type Submitted = Result<Handle<Result<Digested, ReadFailure>>, ReadFailure>;

fn outcome(submitted: Submitted) -> Result<Digested, Failure> {
    submitted.map_err(Failure::Read)?.wait().map_err(Failure::Task)?.map_err(Failure::Read)
}

/// Whether no other task can succeed either.
fn is_end_of_pool(kind: &TaskErrorKind) -> bool {
    matches!(kind, TaskErrorKind::PoolBroken { .. } | TaskErrorKind::PoolClosed)
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The error and its causes in one line.
fn chain(error: &dyn Error) -> String {
    std::iter::successors(Some(error), |&error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
