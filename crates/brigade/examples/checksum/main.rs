//! Prints the SHA-256 of every file below some folders, computed in worker processes, in the format
//! of `sha256sum`.
//!
//! ```sh
//! cargo run --release -p brigade --example checksum -- /usr/share > checksums.txt
//! sha256sum -c --quiet checksums.txt
//! ```
//!
//! The walk is lazy and the number of submitted tasks is bounded, so memory does not grow with the
//! tree. The output is in the order of the walk, in whatever order the workers finish.

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
use output::{Output, print_line};
use report::Report;
use walk::{Found, Walk};

/// Prints the SHA-256 of every regular file below the given folders, in a form that `sha256sum -c`
/// accepts.
///
/// Each file is read and digested by a worker process. A worker that dies costs only the file that
/// it was reading. Symbolic links are followed only if they are given as arguments.
///
/// Exit status: 0 if every file was digested, 1 if some were not, 2 if the program could not run.
#[derive(Debug, Parser)]
#[command(name = "checksum")]
struct Arguments {
    /// Folders and files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Number of worker processes [default: number of usable cores].
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Number of retries for a file whose worker died.
    #[arg(long, value_name = "N", default_value_t = 0)]
    retries: u32,
    /// Kill the worker (SIGKILL) at every attempt of a path that contains this text, to show the
    /// cost of a crash.
    #[arg(long, value_name = "SUBSTRING")]
    crash_on: Option<String>,
    /// Show the run live at this address, such as 127.0.0.1:8080, in a browser or with `brigade
    /// top`.
    #[cfg(feature = "status")]
    #[arg(long, value_name = "ADDRESS")]
    status: Option<String>,
    /// Print one JSON object per file on stdout, and the summary as JSON on stderr.
    #[arg(long)]
    json: bool,
}

/// Number of submitted files per worker: enough that no worker waits for the walk or the output.
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
            print_line(&if arguments.json { report.to_json() } else { report.to_string() });
            ExitCode::from(u8::from(report.failures() > 0))
        }
        // The reader of the output has seen enough.
        Err(error) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            print_line(&format!("checksum: {}", chain(&*error)));
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let begin = Instant::now();
    let pool = start_pool(arguments.workers)?;
    #[cfg(feature = "status")]
    let page = arguments.status.as_ref().map(|address| pool.serve_status(address)).transpose()?;
    #[cfg(feature = "status")]
    if let Some(page) = &page {
        print_line(&format!("checksum: live view at {page}"));
    }
    let mut output = Output::new(arguments.json);
    let mut report = Report::default();
    let outcome = digest_all(&pool, arguments, &mut output, &mut report);
    // Even after a failure, the bar must be removed, and the lines that are ready are valid.
    let finished = output.finish();
    if let Err(error) = outcome.and(finished.map_err(Into::into)) {
        // The remaining results are not needed, so the pool need not produce them. The first
        // failure is reported, whatever the result of the shutdown.
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

/// Keeps a window of tasks submitted and handles their outcomes in the order of the walk.
///
/// If you do not need to know which input an error belongs to, `pool.map` does the same in one
/// line.
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
            Err(Failure::Task(error)) if is_end_of_pool(error.kind()) => return Err(error.into()),
            Err(failure) => {
                report.failed(failure.kind());
                output.failed(&path, &failure)?;
            }
        }
        output.progress(report);
    }
}

/// A submitted file, or the reason why it could not be submitted.
type Submitted = Result<Handle<Result<Digested, ReadFailure>>, ReadFailure>;

fn outcome(submitted: Submitted) -> Result<Digested, Failure> {
    submitted.map_err(Failure::Read)?.wait().map_err(Failure::Task)?.map_err(Failure::Read)
}

/// Returns `true` if no other task can succeed either.
fn is_end_of_pool(kind: &TaskErrorKind) -> bool {
    matches!(kind, TaskErrorKind::PoolBroken { .. } | TaskErrorKind::PoolClosed)
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Returns the error and its causes in one line.
fn chain(error: &dyn Error) -> String {
    std::iter::successors(Some(error), |&error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
