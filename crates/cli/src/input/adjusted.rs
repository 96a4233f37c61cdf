//! Applies to the jobs of an input what options say about each of them: tag, directory, variables
//! and shell.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::task::Poll;

use brigade::runner::Job;
use miette::{IntoDiagnostic, Report, miette};

use super::{Ahead, Entry, Fetched, Input, Problem};
use crate::arguments::{JobOptions, LimitOptions, Run, SandboxOptions};
use crate::confine::confinement;
use crate::each::Each;
use crate::printer::Tag;
use crate::template::{Grammar, Template, TemplateError};

/// The options of each job, parsed. The texts may contain replacement strings.
#[derive(Debug, Clone)]
pub(crate) struct Adjustments {
    tag: Option<Template>,
    is_colored: bool,
    folder: Option<Template>,
    variables: Vec<(OsString, Template)>,
    shell: Option<OsString>,
    confined: Option<AdjustedConfinement>,
}

/// A confinement whose paths differ from job to job.
#[derive(Debug, Clone)]
struct AdjustedConfinement {
    /// Without the paths.
    sandbox: SandboxOptions,
    limits: LimitOptions,
    /// Those to read, to write and to execute.
    paths: [Vec<Template>; 3],
}

/// An input whose jobs are adjusted.
pub(crate) struct Adjusted {
    pub(crate) input: Box<dyn Input>,
    pub(crate) adjustments: Adjustments,
}

impl Adjustments {
    /// Returns the adjustments that the options ask for. Their texts refer to arguments as the
    /// command does.
    pub(crate) fn new(options: &Run, grammar: &Grammar) -> Result<Self, Report> {
        let JobOptions { tag, tagstring, ctag, ctagstring, wd, env, .. } = &options.job;
        let text = match tagstring.as_ref().or(ctagstring.as_ref()) {
            Some(text) => Some(OsString::from(text.replace("\\t", "\t"))),
            None => (*tag || *ctag).then(|| grammar.whole.clone().unwrap_or_else(|| "{}".into())),
        };
        let mut variables = Vec::new();
        for variable in env {
            // Jobs inherit the whole environment; a name alone adds nothing.
            let Some((name, value)) = variable.split_once('=') else { continue };
            if name.is_empty() {
                return Err(miette!("`--env {variable}` has no name before the `=`"));
            }
            variables.push((name.into(), text_of_start("--env", value.as_ref(), grammar)?));
        }
        let shell = options.shell.as_ref().filter(|shell| *shell != DEFAULT_SHELL);
        Ok(Self {
            tag: text.map(|text| text_of_end("--tagstring", &text, grammar)).transpose()?,
            is_colored: (*ctag || ctagstring.is_some()) && console::colors_enabled(),
            folder: wd.as_ref().map(|folder| text_of_start("--wd", folder, grammar)).transpose()?,
            variables,
            shell: options.gnu_shell.as_ref().or(shell).cloned(),
            confined: options
                .sandbox
                .differs()
                .then(|| AdjustedConfinement::new(options, grammar))
                .transpose()?,
        })
    }

    fn apply(&self, entry: &mut Entry) -> Result<(), Problem> {
        let (number, arguments) = (entry.number, entry.arguments.as_slice());
        let mut job = entry.job.clone();
        if let Some(tag) = &self.tag {
            entry.tag = Tag::new(tag.line(number, arguments)?, self.is_colored.then_some(number));
        }
        if let Some(folder) = &self.folder {
            job = job.folder(OsString::from_vec(folder.line(number, arguments)?));
        }
        for (name, value) in &self.variables {
            job = job.env(name, OsStr::from_bytes(&value.line(number, arguments)?));
        }
        if let Some(confined) = &self.confined {
            let sandbox = confined.sandbox(entry)?;
            let made = confinement(&sandbox, confined.limits);
            let made = made.map_err(|problem| format!("job {number}: {problem}"))?;
            job = job.each(made, Job::confinement);
        }
        entry.job = job.each(&self.shell, Job::in_shell);
        Ok(())
    }
}

impl AdjustedConfinement {
    fn new(options: &Run, grammar: &Grammar) -> Result<Self, Report> {
        let mut sandbox = options.sandbox.clone();
        let parsed = |option, paths: &mut Vec<PathBuf>| {
            let texts =
                paths.drain(..).map(|path| text_of_start(option, path.as_os_str(), grammar));
            texts.collect::<Result<Vec<_>, _>>()
        };
        let paths = [
            parsed("--read", &mut sandbox.read)?,
            parsed("--write", &mut sandbox.write)?,
            parsed("--execute", &mut sandbox.execute)?,
        ];
        Ok(Self { sandbox, limits: options.limits, paths })
    }

    fn sandbox(&self, entry: &Entry) -> Result<SandboxOptions, TemplateError> {
        let path = |text: &Template| {
            let path = text.line(entry.number, &entry.arguments)?;
            Ok(PathBuf::from(OsString::from_vec(path)))
        };
        let filled = |texts: &Vec<Template>| texts.iter().map(path).collect::<Result<Vec<_>, _>>();
        let [read, write, execute] = self.paths.each_ref().map(filled);
        Ok(SandboxOptions { read: read?, write: write?, execute: execute?, ..self.sandbox.clone() })
    }
}

/// Parses the value of an option that is needed when a job is over.
fn text_of_end(option: &str, text: &OsStr, grammar: &Grammar) -> Result<Template, Report> {
    let template = Template::text(text, grammar).into_diagnostic()?;
    if template.needs_total() {
        return Err(miette!("{option} cannot contain {{##}} or {{0#}}"));
    }
    Ok(template)
}

/// Parses the value of an option that is needed before a job starts.
pub(crate) fn text_of_start(
    option: &str,
    text: &OsStr,
    grammar: &Grammar,
) -> Result<Template, Report> {
    let template = text_of_end(option, text, grammar)?;
    if template.has_slot() {
        return Err(miette!(
            help = "jobs find the number of their slot in the variable PARALLEL_JOBSLOT",
            "{option} cannot contain {{%}}: the slot is only known when a job starts"
        ));
    }
    Ok(template)
}

/// The shell of `--shell` without a name.
const DEFAULT_SHELL: &str = "/bin/sh";

impl Input for Adjusted {
    fn next(&mut self, waits: bool) -> Fetched {
        let mut next = self.input.next(waits)?;
        if let Poll::Ready(Some(entry)) = &mut next {
            self.adjustments.apply(entry)?;
        }
        next.map(|entry| entry.map(Ok))
    }

    fn ahead(&self) -> Ahead {
        self.input.ahead()
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        let Some(input) = self.input.again()? else { return Ok(None) };
        Ok(Some(Box::new(Self { input, adjustments: self.adjustments.clone() })))
    }

    fn close(&mut self) {
        self.input.close();
    }
}
