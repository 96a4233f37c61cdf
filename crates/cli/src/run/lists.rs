//! Builds the input of a command with argument lists, and rejects lists that are not possible.

use std::collections::hash_map::DefaultHasher;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, Hash};
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;

use brigade::runner::{Duplicates, Runner, Stopper};
use miette::{IntoDiagnostic, Report, miette};

use crate::arguments::{ListOptions, Run};
use crate::input::{
    Combinations, Framing, Input, Jobs, LineOrigin, LineRows, Lines, List, ListError, ListOrigin,
    Row, RowReader, check_lists, cycled, linked, split,
};
use crate::patient::Patient;
use crate::template::{Grammar, Template};

/// The rows of a command's lists, and what is known about them.
struct Table {
    records: Box<dyn Input<Row>>,
    /// Number of arguments of each row, if known.
    arguments: Option<usize>,
    names: Row,
}

/// Returns the jobs of a command and its lists, and the grammar of its replacement strings.
pub(super) fn input(options: &Run, runner: &Runner) -> Result<(Jobs, Grammar), Report> {
    let (lists, stopper) = (&options.lists, &runner.stopper());
    let sharing = options.sharing(runner.slots());
    let mut split = split(options.command.clone(), &lists.separators()).into_diagnostic()?;
    // Without a command, and with nothing but `{}`, GNU parallel takes arguments as commands.
    let is_bare = options.is_gnu() && (split.command.is_empty() || split.command == ["{}"]);
    if split.command.is_empty() && !is_bare {
        return Err(miette!(
            help = "write the command before its arguments: brigade run -- COMMAND {} ::: A B C",
            "no command before the list"
        ));
    }
    reject_quoted_command(&split.command, options)?;
    if !options.pipe.pipe_part {
        split.lists.splice(0..0, lists.arg_file.iter().cloned().map(List::of_file));
    }
    if options.pipe.tee {
        check_teed(&split.lists)?;
    }
    let table = match split.lists.as_slice() {
        [] => streamed(OsStr::new("-"), options, stopper)?,
        [List { contents: ListOrigin::File(file), .. }] => streamed(file, options, stopper)?,
        _ => combined(split.lists, options)?,
    };
    let grammar = Grammar {
        is_shell: options.is_shell_line(),
        is_verbatim: is_bare,
        arguments: table.arguments.map(|arguments| arguments.saturating_mul(sharing.most)),
        appends_nothing: options.pipe.tee && options.is_gnu() && !is_bare,
        is_lenient: options.is_gnu(),
        // The last one.
        has_incomplete_jobs: !sharing.is_single(),
        is_open_ended: sharing.most == usize::MAX,
        joining: options.joining(),
        names: table.names,
        whole: lists.replace.clone(),
        has_plus: lists.plus,
    };
    let template = Template::parse(&split.command, &grammar).into_diagnostic()?;
    let needs_total = template.needs_total();
    let mut jobs = Jobs::new(template, table.records, sharing);
    if needs_total {
        jobs.read_all().map_err(|error| miette!("{error}"))?;
    }
    Ok((jobs, grammar))
}

/// Rejects lists that `--tee` does not allow: standard input belongs to the jobs.
fn check_teed(lists: &[List]) -> Result<(), Report> {
    let reads_stdin = |list: &List| matches!(&list.contents, ListOrigin::File(file) if file == "-");
    if lists.is_empty() || lists.iter().any(reads_stdin) {
        return Err(miette!(
            help = "write the arguments of the jobs after the command: ::: A B C",
            "--tee needs a list that does not come from standard input"
        ));
    }
    Ok(())
}

/// Returns the rows of a single file, which is read while jobs run.
fn streamed(file: &OsStr, options: &Run, stopper: &Stopper) -> Result<Table, Report> {
    let ListOptions { skip_first_line, .. } = options.lists;
    let (framing, rules) = (options.lists.framing(false), options.row_rules()?);
    let skipped = usize::from(skip_first_line);
    let has_header = options.lists.has_header()?;
    let cannot_read = |source| ListError::Read { file: file.display().to_string(), source };
    let opened = Patient::open(file).map_err(cannot_read).into_diagnostic()?;
    let is_stdin = file == "-";
    let what = if is_stdin {
        "standard input".to_owned()
    } else {
        format!("the arguments in {}", file.display())
    };
    let origin = LineOrigin { what, framing, stopper: stopper.clone() };
    let mut rows = if !is_stdin && opened.is_regular() {
        let reader = RowReader::new(rules.clone(), skipped);
        let checks = checks_duplicates(options).then_some(u64::from(has_header));
        let counted = count(opened, &origin.framing, reader, checks);
        let (lines, total) = counted.map_err(cannot_read).into_diagnostic()?.into_diagnostic()?;
        let lines = Lines::of_file(Path::new(file), lines, origin).map_err(cannot_read);
        LineRows::new(lines.into_diagnostic()?, rules, skipped, Some(total))
    } else {
        LineRows::new(Lines::new(opened, origin), rules, skipped, None)
    };
    let names = if has_header { rows.header() } else { Ok(Row::new()) };
    let names = names.map_err(|error| miette!("{error}"))?;
    let arguments = if options.lists.has_columns() { None } else { Some(1) };
    let arguments = arguments.or((!names.is_empty()).then_some(names.len()));
    Ok(Table { records: Box::new(rows), arguments, names })
}

/// Returns `true` if two equal rows would be two equal jobs, and that is an error.
fn checks_duplicates(options: &Run) -> bool {
    !options.allow_duplicates && options.sharing(NonZeroUsize::MIN).is_single()
}

/// Counts the lines and the rows of a file. With `unchecked`, checks that no two rows after this
/// number are the same.
pub(super) fn count(
    file: Patient<File>,
    framing: &Framing,
    mut reader: RowReader,
    unchecked: Option<u64>,
) -> io::Result<Result<(u64, u64), ListError>> {
    let mut duplicates: Duplicates<u64> = Duplicates::default();
    let (mut lines, mut rows) = (0, 0_u64);
    let mut take = |row: Option<Row>| -> Result<(), ListError> {
        let Some(row) = row else { return Ok(()) };
        rows += 1;
        if let Some(number) = unchecked.and_then(|unchecked| rows.checked_sub(unchecked))
            && number > 0
            && let Some(first) = duplicates.add(hash_of(&row), number)
        {
            let value = row.join(OsStr::new(" ")).display().to_string();
            return Err(ListError::Duplicate { list: 1, first, second: number, value });
        }
        Ok(())
    };
    let read = framing.each(file, |line| {
        lines += 1;
        take(reader.push(line)?)?;
        Ok(!reader.is_over)
    })?;
    Ok(read.and_then(|()| take(reader.finish()?)).map(|()| (lines, rows)))
}

/// Returns a hash of 64 bits: among a million different values, two collide in one of 37 million
/// lists.
pub(super) fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// Returns the combinations of several lists, which are read first.
fn combined(lists: Vec<List>, options: &Run) -> Result<Table, Report> {
    let (framing, rules) = (options.lists.framing(false), options.row_rules()?);
    let has_header = options.lists.has_header()?;
    let (mut names, mut read) = (Row::new(), Vec::new());
    for (index, list) in lists.into_iter().enumerate() {
        let skipped = usize::from(options.lists.skip_first_line && index == 0);
        let is_linked = list.is_linked;
        let reader = RowReader::new(rules.clone(), skipped);
        let mut rows = list.read(&framing, reader).into_diagnostic()?;
        if has_header && !rows.is_empty() {
            names.extend(rows.remove(0));
        }
        read.push((rows, is_linked));
    }
    let mut dimensions = linked(read);
    if options.lists.link {
        dimensions = vec![cycled(&dimensions)];
    }
    if checks_duplicates(options) {
        check_lists(&dimensions).into_diagnostic()?;
    }
    let count = dimensions.iter().map(|dimension| dimension.lists).sum();
    let combinations = Combinations::new(dimensions);
    let width = if options.lists.has_columns() { combinations.width() } else { count };
    Ok(Table { records: Box::new(combinations), arguments: Some(width), names })
}

/// Rejects a command of one word with spaces, which GNU parallel would run in a shell.
pub(super) fn reject_quoted_command(command: &[OsString], options: &Run) -> Result<(), Report> {
    let [word] = command else { return Ok(()) };
    let text = word.to_string_lossy();
    if options.shell.is_some() || !text.contains(' ') || Path::new(word).exists() {
        return Ok(());
    }
    Err(miette!(
        help = "remove the quotes to run a program with arguments, or add --shell to run a line of /bin/sh",
        "`{text:.200}` is a single word, and no such program exists"
    ))
}
