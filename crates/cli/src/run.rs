//! `brigade run`: runs jobs and determines the exit status.

mod busy;
mod client;
mod event_queue;
mod explain;
mod job_data;
mod lists;
mod outputs;
mod pipe;
mod placement;
mod prepare;
mod results;
mod session;
mod sink;
mod status;
mod stop;
mod storage;

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::task::Poll;

use brigade::runner::{ResultTable, Runner, Summary};
use miette::{IntoDiagnostic, Report, WrapErr, miette};

use crate::RUN_FAILED;
use crate::arguments::Run;
use crate::descriptors::most_held;
use crate::input::Input;
use crate::live::LiveView;
use crate::patient::Patient;
use crate::printer::ReorderBuffer;
use crate::remote::RemoteRun;
use crate::screen::{Screen, Statistics, View, announce};
use client::RunClient;
use event_queue::EventQueue;
use outputs::Outputs;
use results::ResultSink;
use session::Session;
use sink::{JsonLines, ReportSink, Sinks};
pub(crate) use status::code as job_status;
use storage::Storage;

/// Runs the jobs. Returns the exit status.
pub(crate) fn run(options: &Run) -> Result<u8, Report> {
    let view = View::new(is_progress_wanted(options));
    storage::set_temporary_folder(options)?;
    let mut remote = RemoteRun::of(options)?;
    let runner = prepare::runner(options, view.tick())?;
    let (input, grammar) = prepare::input(options, &runner)?;
    let storage = Storage::of(options, &grammar)?;
    if options.dry_run {
        return dry_run(input);
    }
    // Before anything is written.
    let batch = remote.as_mut().map(RemoteRun::connect).transpose()?;
    let (resume, joblog) = prepare::joblog(options, batch.as_deref(), |resume| {
        prepare::check(input.as_ref(), options, &runner, resume)
    })?;
    if let Some(remote) = &mut remote {
        remote.resume(&resume, options.joblog.as_deref());
    }
    let report = prepare::report(options, &runner)?;
    let (file_names, table) = storage.open(options)?;
    let queue = EventQueue::new(runner.stopper(), reorder(options));
    let first_signal = stop::on_signals(runner.stopper(), queue.clone())
        .into_diagnostic()
        .wrap_err("cannot install signal handlers")?;
    let has_table = table.is_some();
    let mut client = RunClient::new(input, resume, file_names, has_table, queue.clone(), options);
    let sinks = sinks(options, &runner, report, table, view.has_area())?;
    let screen = Screen::new(view, Statistics::new(&runner, remote.is_some()));
    let is_quiet = options.is_gnu() && !(options.bar || options.eta);
    let stopper = runner.stopper();
    let session = Session::new(screen, sinks, joblog, is_quiet, queue.clone(), stopper);
    let thread = queue.start(session).into_diagnostic().wrap_err("cannot start a thread")?;
    let result = match remote {
        Some(remote) => remote.run(runner, &mut client),
        None => runner.run_client(&mut client).map_err(explain::run_error),
    };
    let Some(session) = queue.finish(thread) else {
        return Ok(status::stopped(first_signal.get().copied()));
    };
    let Session { screen: Screen { statistics, .. }, mut sinks, decision, failure, .. } = session;
    let of_run = |summary: Summary| {
        let (total, signal) = (statistics.total(), first_signal.get().copied());
        let decided = options.halt.and_then(|policy| policy.0).zip(decision.as_ref());
        status::of(&summary, decided, total, signal, options.is_gnu())
    };
    let status = failure.unwrap_or_else(|| result.map(of_run));
    let code = status.as_ref().copied().unwrap_or(RUN_FAILED);
    for (_, sink) in &mut sinks {
        sink.end(&statistics, code)?;
    }
    status
}

/// Returns whether the options ask for progress or against it; `None` if neither.
fn is_progress_wanted(options: &Run) -> Option<bool> {
    match (options.bar || options.eta, options.no_bar || options.json) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// Returns the order of outcomes, if it is that of the jobs.
fn reorder(options: &Run) -> Option<ReorderBuffer> {
    let buffer = ReorderBuffer::new(most_held());
    // The jobs of `--tee` wait for each other.
    let buffer = if options.pipe.tee { buffer.unbounded() } else { buffer };
    options.keep_order.then_some(buffer)
}

/// Returns the sinks that the options ask for. Results are stored before outputs are printed: the
/// name of a file may be printed.
fn sinks(
    options: &Run,
    runner: &Runner,
    report: Option<ReportSink>,
    table: Option<ResultTable>,
    ends_lines: bool,
) -> Result<Sinks, Report> {
    let mut sinks: Sinks = Vec::new();
    if let Some(address) = &options.status {
        let live = LiveView::serve(address, runner)?;
        announce(&format!("live view at {}", live.url()));
        sinks.push(("update the live view", Box::new(live)));
    }
    if options.json {
        sinks.push(("print an event", Box::new(JsonLines)));
    }
    if let Some(report) = report {
        sinks.push(("store a job's record for the report", Box::new(report)));
    }
    sinks.push(("store a job's results", Box::new(ResultSink::new(options, table))));
    sinks.push(("print a job's output", Box::new(Outputs::new(options, ends_lines))));
    Ok(sinks)
}

/// Prints the commands as lines that a shell understands.
fn dry_run(mut input: Box<dyn Input>) -> Result<u8, Report> {
    let mut stdout = io::BufWriter::new(Patient(io::stdout().lock()));
    while let Poll::Ready(Some(entry)) = input.next(true) {
        let entry = entry.map_err(|error| miette!("{error}"))?;
        // The slot is not known in advance.
        let command = entry.job.with_slot("{%}").to_line();
        stdout.write_all(command.as_bytes()).into_diagnostic()?;
        stdout.write_all(b"\n").into_diagnostic()?;
    }
    stdout.flush().into_diagnostic()?;
    Ok(0)
}
