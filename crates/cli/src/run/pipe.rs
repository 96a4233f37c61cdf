//! Builds the input of `--pipe`.

use std::io;

use brigade::runner::Runner;
use miette::{IntoDiagnostic, Report, miette};

use super::lists::reject_quoted_command;
use crate::arguments::Run;
use crate::input::{Input, Row, split};
use crate::pipe::{Blocks, Cut};
use crate::template::{Grammar, Template};

/// Returns the jobs of `--pipe`.
pub(super) fn input(options: &Run, runner: &Runner) -> Result<Box<dyn Input>, Report> {
    let lists = &options.lists;
    let split = split(options.command.clone(), &lists.separators()).into_diagnostic()?;
    reject_quoted_command(&split.command, options)?;
    if !split.lists.is_empty() || !lists.arg_file.is_empty() {
        return Err(miette!(
            help = "leave out the list; {#} is the number of the block",
            "the jobs of --pipe get no arguments"
        ));
    }
    let grammar = Grammar {
        is_shell: options.shell,
        is_verbatim: false,
        arguments: Some(0),
        names: Row::new(),
        whole: lists.replace.clone(),
    };
    let template = Template::parse(&split.command, &grammar).into_diagnostic()?;
    let cut = Cut::of(&options.pipe, lists.header.as_deref(), options.joblog.is_some())?;
    let slots = runner.slots().get();
    Ok(Box::new(Blocks::new(io::stdin(), cut, template, slots, runner.stopper())))
}
