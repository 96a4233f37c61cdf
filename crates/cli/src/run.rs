//! `brigade run`: runs jobs and determines the exit status.

mod busy;
mod client;
mod event_queue;
mod explain;
mod kept;
mod lists;
mod pipe;
mod placement;
mod prepare;
mod session;
mod status;
mod stop;
mod storage;
mod target;

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use brigade::runner::Summary;
use miette::{IntoDiagnostic, Report, WrapErr, miette};

use crate::RUN_FAILED;
use crate::arguments::Run;
use crate::input::{Fetch, Input};
use crate::live::LiveView;
use crate::patient::Patient;
use crate::screen::{Screen, Statistics, announce};
use client::RunClient;
use event_queue::EventQueue;
use kept::Shared;
use session::{Session, SessionEnd};
pub(crate) use status::code as job_status;
use storage::Storage;
use target::Target;

/// Runs the jobs. Returns the exit status.
pub(crate) fn run(options: &Run) -> Result<u8, Report> {
    let screen = Screen::new(match (options.bar || options.eta, options.no_bar || options.json) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    });
    storage::set_temporary_folder(options)?;
    let mut target = Target::of(options)?;
    let runner = target.runner(options, screen.tick())?;
    let (input, grammar) = prepare::input(options, &runner)?;
    let storage = Storage::of(options, &grammar)?;
    if options.dry_run {
        return dry_run(input);
    }
    let batch = target.connect()?;
    let (resume, joblog) = prepare::joblog(options, batch.as_deref(), |resume| {
        prepare::check(input.as_ref(), options, &runner, resume)
    })?;
    target.resume(&resume, options);
    let files = crate::report::Files::open(options)?;
    let (file_names, table) = storage.open(options)?;
    let queue = EventQueue::new(runner.stopper());
    let live = options.status.as_ref().map(|address| LiveView::serve(address, &runner));
    let live = live.transpose()?;
    if let Some(live) = &live {
        announce(&format!("live view at {}", live.url()));
    }
    let first_signal = stop::on_signals(runner.stopper(), queue.clone())
        .into_diagnostic()
        .wrap_err("cannot install signal handlers")?;
    let shared = Shared::new(options, table.is_some());
    let mut client = RunClient::new(input, resume, file_names, &shared, queue.clone(), options);
    let ends_lines = screen.has_area();
    let session = Session {
        screen,
        statistics: Statistics::new(&runner).on_cluster(options.is_remote()),
        report: prepare::report(options, &runner)?,
        live,
        joblog,
        table,
        printer: crate::printer::Printer::new(ends_lines),
        is_json: options.json,
        is_live: options.line_buffer,
        stores_at_end: options.line_buffer || options.is_remote(),
        is_quiet: options.dialect.is_quiet,
        printed: options.printed.clone(),
        hides_outputs: storage::hides_outputs(options),
        shared,
        stopper: runner.stopper(),
        decision: None,
        failure: None,
    };
    let thread = queue.start(session).into_diagnostic().wrap_err("cannot start a thread")?;
    let result = target.run(runner, &mut client);
    let Some(end) = queue.finish(thread) else {
        return Ok(status::stopped(first_signal.get()));
    };
    let SessionEnd { mut report, statistics, decision, failure } = end;
    let of_run = |summary: &Summary| {
        let (total, halt) = (statistics.total(), options.halt.and_then(|policy| policy.0));
        match (halt, &decision) {
            (Some(halt), Some(decision)) if options.dialect.halts_as_parallel => {
                status::of_halt(halt, decision, total)
            }
            _ => status::of(summary, halt, decision.as_ref(), total, first_signal.get()),
        }
    };
    let status = match failure {
        Some(failure) => failure,
        None => result.map(|summary| of_run(&summary)),
    };
    let code = status.as_ref().copied().unwrap_or(RUN_FAILED);
    if options.json {
        // The reader may be gone.
        let _ = crate::printer::json::print_end(&statistics, code);
    }
    if let Some(report) = &mut report {
        files.write(report, &crate::report::this_run(&statistics, code))?;
    }
    status
}

/// Prints the commands as lines that a shell understands.
fn dry_run(mut input: Box<dyn Input>) -> Result<u8, Report> {
    let mut stdout = io::BufWriter::new(Patient(io::stdout().lock()));
    loop {
        match input.fetch_blocking() {
            Fetch::Entry(entry) => {
                // The slot is not known in advance.
                let command = entry.job.with_slot("{%}").to_line();
                stdout.write_all(command.as_bytes()).into_diagnostic()?;
                stdout.write_all(b"\n").into_diagnostic()?;
            }
            Fetch::Failed(error) => return Err(miette!("{error}")),
            Fetch::Later | Fetch::End => break,
        }
    }
    stdout.flush().into_diagnostic()?;
    Ok(0)
}
