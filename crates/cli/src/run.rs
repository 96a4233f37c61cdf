//! `brigade run`: from the options to the exit status.

mod desk;
mod feed;
mod happening;
mod prepare;
mod session;
mod status;
mod stop;

use std::io::{self, Write};

use miette::{IntoDiagnostic, Report, WrapErr, miette};

use crate::arguments::Run;
use crate::clock::StartTime;
use crate::input::{Fetch, Input};
use crate::screen::{Screen, Statistics};
use desk::Desk;
use feed::{Feed, Shared};
use session::{Closing, Session};

/// Runs the jobs. Answers the exit status.
pub(crate) fn run(options: &Run) -> Result<u8, Report> {
    let screen = Screen::new(match (options.bar || options.eta, options.no_bar || options.json) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    });
    let runner = prepare::runner(options, screen.tick())?;
    let input = prepare::input(options, &runner.stopper())?;
    if options.dry_run {
        return dry_run(input);
    }
    let start = StartTime::now();
    let (resume, joblog) = prepare::joblog(options, start)?;
    let desk = Desk::new(runner.stopper());
    let signals = stop::on_signals(runner.stopper(), desk.clone())
        .into_diagnostic()
        .wrap_err("cannot listen to signals")?;
    let shared = Shared::new(options);
    let mut feed = Feed::new(input, resume, &shared, desk.clone(), options);
    let session = Session {
        screen,
        statistics: Statistics::new(&runner),
        joblog,
        results: options.results.clone().map(crate::results::Results::new),
        records: prepare::records(options)?,
        printer: crate::printer::Printer::new(options.tag),
        is_json: options.json,
        is_live: options.line_buffer,
        shared,
        stopper: runner.stopper(),
        last: None,
        decisive: None,
        trouble: None,
    };
    let thread = desk.open(session).into_diagnostic().wrap_err("cannot start a thread")?;
    let result = runner.run_source(&mut feed, |event| desk.put(event));
    let Some(closing) = desk.close(thread) else {
        return Ok(status::stopped(signals.first()));
    };
    let Closing { mut records, statistics, decisive, trouble } = closing;
    if let Some(records) = &mut records {
        crate::report::write(options, records, &statistics)?;
    }
    if let Some(trouble) = trouble {
        return trouble;
    }
    let summary = result.into_diagnostic()?;
    Ok(status::of(&summary, options.halt, decisive.as_ref(), statistics.total(), signals.first()))
}

/// Prints the commands, as lines that a shell understands.
fn dry_run(mut input: Box<dyn Input>) -> Result<u8, Report> {
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    loop {
        match input.fetch_blocking() {
            Fetch::Entry(entry) => {
                // Which slot it would run on is not known.
                let command = entry.job.with_slot("{%}").to_string();
                writeln!(stdout, "{command}").into_diagnostic()?;
            }
            Fetch::Failed(error) => return Err(miette!("{error}")),
            Fetch::Later | Fetch::End => break,
        }
    }
    stdout.flush().into_diagnostic()?;
    Ok(0)
}
