//! Builds the input of `--pipe` and `--pipe-part`.

use std::io;

use brigade::runner::Runner;
use miette::{IntoDiagnostic, Report, miette};

use super::lists::{self, reject_quoted_command};
use crate::arguments::Run;
use crate::input::{Input, split};
use crate::patient::Patient;
use crate::pipe::{self, Blocks, Cut, PipedJobs, SharedInput, Source};
use crate::template::{Grammar, Template};

/// Returns the jobs of `--tee`, and the grammar of their replacement strings.
pub(super) fn teed(options: &Run, runner: &Runner) -> Result<(Box<dyn Input>, Grammar), Report> {
    let (mut jobs, grammar) = lists::input(options, runner)?;
    jobs.read_all().map_err(|error| miette!("{error}"))?;
    if options.pipe.pipe_part {
        let input = SharedInput::File(pipe::whole(&options.lists.arg_file)?);
        return Ok((Box::new(jobs.sharing_input(input)), grammar));
    }
    if options.retries > 0 || options.resume || options.resume_failed {
        return Err(miette!(
            help = "store the input in FILE, and use --pipe-part -a FILE",
            "--retries and --resume are not available with --pipe --tee: the input is read once"
        ));
    }
    let (count, slots) = (jobs.ahead().count, runner.slots());
    if count > slots.get() as u64 {
        return Err(miette!(
            help = "use --jobs 0",
            "the {count} jobs of --tee must all run at once, but only {slots} may"
        ));
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let blocks = Blocks::new(Patient(io::stdin()), Cut::for_all(), count, runner.stopper());
    Ok((Box::new(jobs.sharing_input(SharedInput::Stream(blocks))), grammar))
}

/// Returns the jobs of `--pipe` or `--pipe-part`.
pub(super) fn input(options: &Run, runner: &Runner) -> Result<Box<dyn Input>, Report> {
    let lists = &options.lists;
    let split = split(options.command.clone(), &lists.separators()).into_diagnostic()?;
    reject_quoted_command(&split.command, options)?;
    if !split.lists.is_empty() || (!lists.arg_file.is_empty() && !options.pipe.pipe_part) {
        return Err(miette!(
            help = "leave out the list; {#} is the number of the block",
            "the jobs of --pipe get no arguments"
        ));
    }
    if lists.skip_first_line {
        return Err(miette!(
            help = "cut the line off before, as with `tail -n +2`",
            "--skip-first-line is not available with --pipe"
        ));
    }
    if options.pipe.round_robin && (options.retries > 0 || options.resume || options.resume_failed)
    {
        return Err(miette!(
            help = "leave out --round-robin: each block is the input of a job of its own then",
            "--retries and --resume are not available with --round-robin: jobs share the blocks"
        ));
    }
    let is_file = options.pipe.cat || options.pipe.fifo;
    let grammar = Grammar {
        is_shell: options.is_shell_line(),
        arguments: Some(usize::from(is_file)),
        whole: lists.replace.clone(),
        has_plus: lists.plus,
        ..Grammar::default()
    };
    let template = Template::parse(&split.command, &grammar).into_diagnostic()?;
    let slots = runner.slots().get();
    let source = if options.pipe.pipe_part {
        Source::Parts(pipe::parts(options, slots)?.into_iter())
    } else {
        let cut = Cut::of(options)?;
        Source::Blocks(Blocks::new(Patient(io::stdin()), cut, slots, runner.stopper()))
    };
    Ok(Box::new(PipedJobs::new(source, template, is_file)))
}
