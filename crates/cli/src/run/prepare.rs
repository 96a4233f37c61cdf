//! Converts the options to the parts of a run, and rejects invalid input before anything runs.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::task::Poll;
use std::time::Duration;

use brigade::cores::{Policy, Smt};
use brigade::runner::{
    self, Builder, Job, Joblog, Output, Resume, ResumeRule, Runner, Stopper, check_duplicates,
};
use miette::{IntoDiagnostic, Report, WrapErr, miette};

use super::sink::ReportSink;
use super::{explain, lists, pipe, placement};
use crate::arguments::{CorePolicy, HaltPolicy, Run};
use crate::confine;
use crate::each::Each;
use crate::input::{
    Adjusted, Adjustments, Commands, Entry, Format, Input, JsonError, LineOrigin, Lines, Problem,
    Ready, RowReader, RowRules, jobs_of_toml, shuffled,
};
use crate::patient::Patient;
use crate::report::Files;
use crate::template::Grammar;

/// The start of a script.
const SCRIPT: &[u8; 2] = b"#!";
/// The permissions of a program.
const EXECUTABLE: u32 = 0o111;

pub(super) fn runner(options: &Run, tick: Option<Duration>) -> Result<Runner, Report> {
    let retry = options.retry_delay.unwrap_or_default();
    let builder = Runner::builder()
        .retry(retry.attempts(options.retries.saturating_add(1)))
        .raise_open_files()
        .each(options.retry_only_timeouts.then_some(()), |builder, ()| {
            builder.retry_only_timeouts()
        })
        .each(options.timeout, Builder::limit)
        .each(options.halt.and_then(|HaltPolicy(halt)| halt), Builder::halt)
        .each(tick, Builder::tick);
    let builder = if options.is_remote() {
        // Nothing of this machine is needed.
        builder.unpinned().jobs(crate::remote::jobs(options))
    } else {
        on_this_machine(builder, options, tick.is_some())?
    };
    builder.build().map_err(explain::build_error)
}

fn on_this_machine(builder: Builder, options: &Run, is_shown: bool) -> Result<Builder, Report> {
    let placement = placement::of(options)?;
    let load = options.load.map(|load| load.of(placement.usable));
    let resources = &options.resources;
    let mut builder = builder
        .cores_per_job(options.cores_per_job.map_or(1, NonZeroUsize::get))
        .canary_limit(options.canary_timeout)
        .output(if options.printed.ungroup { Output::Inherit } else { Output::Whole })
        // Only the progress on a terminal shows the latest lines.
        .live(options.line_buffer || options.printed.latest_line && is_shown)
        .nice(options.nice)
        .adopt_orphans()
        .each(&resources.resource, |builder, (name, resource)| builder.resource(name, *resource))
        .each(&resources.needs, |builder, (name, amount)| builder.needs(name, amount.total()))
        .each(placement.jobs.map(NonZeroUsize::get), Builder::jobs)
        .each(options.delay, Builder::stagger)
        .each(options.canary.as_ref().map(Job::shell), Builder::canary)
        .each(options.memfree, Builder::least_memory)
        .each(load, Builder::most_load)
        .each(&options.process_slot_var, Builder::slot_variable);
    builder = match options.policy.unwrap_or_default() {
        CorePolicy::Contiguous => builder.policy(Policy::Contiguous),
        CorePolicy::Compact => builder.policy(Policy::Compact),
        CorePolicy::Scatter => builder.policy(Policy::Scatter),
        CorePolicy::WholeCores => builder.smt(Smt::Whole),
        CorePolicy::OneThread => builder.smt(Smt::Isolate),
    };
    builder = match placement.pool {
        Some(pool) => builder.cores(pool),
        None => builder.unpinned(),
    };
    if !options.sandbox.differs() {
        let made = confine::confinement(&options.sandbox, options.limits);
        let made = made.map_err(|problem| miette!("{problem}"))?;
        builder = builder.each(made, Builder::confinement);
    }
    Ok(builder)
}

/// Returns the jobs, and the grammar of replacement strings in options.
pub(super) fn input(options: &Run, runner: &Runner) -> Result<(Box<dyn Input>, Grammar), Report> {
    let stopper = &runner.stopper();
    // Jobs that are not made from lists have all the arguments that there are.
    let plain = || Grammar { is_lenient: true, has_plus: options.lists.plus, ..Grammar::default() };
    let (input, grammar): (Box<dyn Input>, _) = match &options.file {
        Some(file) => (from_file(file, options, stopper)?, plain()),
        None if options.retry_failed => (failed(options)?, plain()),
        None if options.command.is_empty() => {
            return Err(miette!(
                help = "brigade run -- COMMAND {} ::: A B C, or brigade run FILE; see brigade run --help",
                "nothing to run"
            ));
        }
        None if options.pipe.tee => pipe::teed(options, runner)?,
        None if options.pipe.pipe || options.pipe.pipe_part => {
            (pipe::input(options, runner)?, plain())
        }
        None => {
            let (jobs, grammar) = lists::input(options, runner)?;
            (Box::new(jobs), grammar)
        }
    };
    let adjustments = Adjustments::new(options, &grammar)?;
    let input: Box<dyn Input> = Box::new(Adjusted { input, adjustments });
    if !options.shuffle {
        return Ok((input, grammar));
    }
    let seed = match options.seed {
        Some(seed) => seed,
        None => getrandom::u64().map_err(|error| miette!("cannot generate a seed: {error}"))?,
    };
    let shuffled = shuffled(input, seed).map_err(|error| miette!("{error}"))?;
    Ok((Box::new(shuffled), grammar))
}

fn from_file(file: &Path, options: &Run, stopper: &Stopper) -> Result<Box<dyn Input>, Report> {
    let is_stdin = file == Path::new("-");
    let format = options.format.unwrap_or_else(|| Format::of(file));
    let confining = (options.sandbox.clone(), options.limits);
    let name = file.to_string_lossy();
    let what =
        if is_stdin { "standard input".to_owned() } else { format!("the jobs in {name:.200}") };
    let cannot_read = || format!("cannot read {what}");
    if format == Format::Toml {
        let text = Patient::open(file.as_os_str()).and_then(io::read_to_string);
        let text = text.into_diagnostic().wrap_err_with(cannot_read)?;
        let jobs = jobs_of_toml(&name, &text, &confining)?;
        if !options.allow_duplicates {
            check_duplicates(&jobs).map_err(explain::run_error)?;
        }
        return Ok(Box::new(ready((1..).zip(jobs))));
    }
    let json = (format == Format::Jsonl).then_some(confining);
    let framing = options.lists.framing(true);
    let origin = LineOrigin { what: what.clone(), framing, stopper: stopper.clone() };
    let opened = Patient::open(file.as_os_str()).map_err(|error| {
        let hint = (error.kind() == io::ErrorKind::NotFound)
            .then(|| format!("if it is a command: brigade run -- {name:.200}"));
        let error = Report::from_err(error).wrap_err(cannot_read());
        match hint {
            Some(hint) => miette!(help = hint, "{error}: {}", error.root_cause()),
            None => error,
        }
    })?;
    if options.format.is_none()
        && !is_stdin
        && is_program(&opened.0).into_diagnostic().wrap_err_with(cannot_read)?
    {
        return Err(miette!(
            help = format!(
                "to run the program itself: brigade run -- {name}; if it is a list of commands, add --format lines"
            ),
            "{name} is a program, not a job file: its lines would run in parallel"
        ));
    }
    let lines = if !is_stdin && opened.is_regular() {
        let reader = RowReader::new(RowRules::default(), 0);
        let checks = (!options.allow_duplicates).then_some(0);
        let counted = lists::count(opened, &origin.framing, reader, checks);
        let counted = counted.into_diagnostic().wrap_err_with(cannot_read)?;
        let (total, _) = counted.map_err(explain::list_error)?;
        Lines::of_file(file, total, origin).into_diagnostic().wrap_err_with(cannot_read)?
    } else {
        Lines::new(opened, origin)
    };
    Ok(Box::new(Commands::new(lines, json)))
}

/// Checks all jobs before the first one runs, if they can be read twice and may be wrong.
pub(super) fn check(
    input: &dyn Input,
    options: &Run,
    runner: &Runner,
    resume: &Resume,
) -> Result<(), Report> {
    let file = options.file.as_deref().unwrap_or(Path::new("-"));
    let is_detailed = options.format.unwrap_or_else(|| Format::of(file)) != Format::Lines;
    let may_be_wrong = match options.file {
        Some(_) => is_detailed,
        None => options.lists.has_columns(),
    };
    if resume.count() == 0 && !may_be_wrong {
        return Ok(());
    }
    let mut resume = resume.clone();
    let Some(mut jobs) = input.again().into_diagnostic()? else { return Ok(()) };
    let wrong = |error: Problem| match error.downcast::<JsonError>() {
        Ok(error) => error.into_report(&file.display().to_string()),
        Err(error) => miette!("{error}"),
    };
    while let Poll::Ready(Some(entry)) = jobs.next(true) {
        let entry = entry.map_err(wrong)?;
        runner.check(&entry.job, entry.number).map_err(explain::run_error)?;
        resume.has(entry.number, &entry.job);
    }
    resume.check().into_diagnostic()
}

/// Returns the jobs that have failed according to the log.
fn failed(options: &Run) -> Result<Box<dyn Input>, Report> {
    let path = options.joblog.as_deref().unwrap_or(Path::new(""));
    let jobs = Joblog::failed(path)
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot read the joblog {}", path.display()))?;
    let numbered = jobs.into_iter().map(|job| (job.number.unwrap_or_default(), job));
    Ok(Box::new(ready(numbered)))
}

fn ready(jobs: impl Iterator<Item = (u64, Job)>) -> Ready {
    let entries = jobs.map(|(number, job)| {
        let arguments = vec![job.to_string().into()];
        Entry::new(number, job.number(number), arguments)
    });
    Ready(entries.collect::<Vec<_>>().into_iter())
}

/// Returns `true` if a file is a script or another program.
fn is_program(file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(false);
    }
    let mut start = [0; SCRIPT.len()];
    let is_script = file.read_at(&mut start, 0)? == SCRIPT.len() && start == *SCRIPT;
    Ok(is_script || metadata.permissions().mode() & EXECUTABLE != 0)
}

/// Opens the log, and calls `check` before it removes anything but an incomplete line.
/// A new log gets the name of the batch.
pub(super) fn joblog(
    options: &Run,
    batch: Option<&str>,
    check: impl FnOnce(&Resume) -> Result<(), Report>,
) -> Result<(Resume, Option<Joblog>), Report> {
    let Some(path) = &options.joblog else {
        check(&Resume::default())?;
        return Ok((Resume::default(), None));
    };
    let cannot = |what: &str| format!("cannot {what} the joblog {}", path.display());
    if options.resume || options.resume_failed || options.retry_failed {
        let rule = if !options.is_gnu() {
            ResumeRule::Same
        } else if options.resume_failed {
            ResumeRule::SucceededNumbers
        } else {
            ResumeRule::AllNumbers
        };
        let opened = Joblog::resume_with(path, rule).into_diagnostic();
        let (joblog, resume) = opened.wrap_err_with(|| cannot("resume from"))?;
        if options.retry_failed {
            return Ok((resume.redo(), Some(joblog)));
        }
        check(&resume).wrap_err_with(|| cannot("resume from"))?;
        return Ok((resume, Some(joblog)));
    }
    check(&Resume::default())?;
    let created = Joblog::create(path, batch).into_diagnostic();
    let joblog = created.wrap_err_with(|| cannot("write"))?;
    Ok((Resume::default(), Some(joblog)))
}

/// Starts the report, if it or the trace is wanted.
pub(super) fn report(options: &Run, runner: &Runner) -> Result<Option<ReportSink>, Report> {
    if options.report.is_none() && options.trace.is_none() {
        return Ok(None);
    }
    let files = Files::open(options)?;
    let report = runner::Report::new(runner)
        .into_diagnostic()
        .wrap_err("cannot create a temporary file for the report")?;
    Ok(Some(ReportSink { report, files }))
}
