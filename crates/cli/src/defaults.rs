//! Default options, from files and variables.
//!
//! For `brigade run` they are in `$XDG_CONFIG_HOME/brigade/config`, one option a line, and in
//! `$BRIGADE_OPTIONS`. Options of the command line win.

mod words;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::arguments::Arguments;
use crate::{gnu, separator};

/// Some options, and where they come from.
#[derive(Debug)]
pub(crate) struct Source {
    /// Such as `line 3 of FILE`.
    name: String,
    pub(crate) words: Vec<OsString>,
}

impl Source {
    /// Reads a file, in which lines that begin with `#` are comments. Returns `None` if there is no
    /// such file.
    pub(crate) fn file(path: &Path) -> Result<Option<Vec<Self>>, clap::Error> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(complaint(&path.display().to_string(), &error.to_string())),
        };
        let mut sources = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if !line.trim_start().starts_with('#') && !line.trim().is_empty() {
                let name = format!("line {number} of {}", path.display());
                sources.push(Self::new(name, line)?);
            }
        }
        Ok(Some(sources))
    }

    /// Reads an environment variable. Returns `None` if it is not set.
    pub(crate) fn variable(name: &str) -> Result<Option<Self>, clap::Error> {
        let Some(value) = env::var_os(name) else { return Ok(None) };
        let name = format!("${name}");
        match value.to_str() {
            Some(value) => Self::new(name, value).map(Some),
            None => Err(complaint(&name, "it is not valid UTF-8")),
        }
    }

    fn new(name: String, line: &str) -> Result<Self, clap::Error> {
        let words = words::split(line).map_err(|error| complaint(&name, &error.to_string()))?;
        Ok(Self { name, words })
    }

    /// Checks that these options of ours exist and have valid values.
    pub(crate) fn check(&self, subcommand: &str, options: &[OsString]) -> Result<(), clap::Error> {
        let Err(error) = parse(subcommand, options, &["--", "true"]) else { return Ok(()) };
        if matches!(
            error.kind(),
            ErrorKind::ArgumentConflict
                | ErrorKind::MissingRequiredArgument
                | ErrorKind::DisplayHelp
                | ErrorKind::DisplayVersion
        ) {
            // Other sources may resolve it, or not ask for it.
            return Ok(());
        }
        let mut command = Arguments::command();
        command.build();
        let text = gnu::explain(error, &command).to_string();
        let text = text.trim_start_matches("error: ");
        Err(complaint(&self.name, text.lines().next().unwrap_or_default()))
    }
}

fn complaint(source: &str, problem: &str) -> clap::Error {
    let text = format!("wrong default options in {source}: {problem}\n");
    clap::Error::raw(ErrorKind::InvalidValue, text)
}

fn parse(subcommand: &str, options: &[OsString], rest: &[&str]) -> Result<Arguments, clap::Error> {
    let words = ["brigade", subcommand].into_iter().map(OsString::from);
    let rest = rest.iter().map(OsString::from);
    Arguments::try_parse_from(words.chain(options.iter().cloned()).chain(rest))
}

/// Inserts the default options of `brigade run` into a command line.
pub(crate) fn inserted(words: Vec<OsString>) -> Result<Vec<OsString>, clap::Error> {
    const BEFORE_OPTIONS: usize = 2;
    let mut sources = Vec::new();
    if let Some(folder) = config_folder() {
        sources = Source::file(&folder.join("brigade/config"))?.unwrap_or_default();
    }
    sources.extend(Source::variable("BRIGADE_OPTIONS")?);
    let command = Arguments::command();
    let run = command.find_subcommand("run").unwrap_or(&command);
    let mut words = words;
    let mut stronger = words.split_off(BEFORE_OPTIONS);
    for source in sources.iter().rev() {
        if source.words.iter().any(|word| word == "--") {
            return Err(complaint(&source.name, "expected options, not a command"));
        }
        source.check("run", &source.words)?;
        let mut kept = Vec::new();
        let mut rest = source.words.as_slice();
        while let Some(first) = rest.first() {
            let length = 1 + separator::values_of(first.as_bytes(), run).unwrap_or_default();
            let (option, others) = rest.split_at(length.min(rest.len()));
            rest = others;
            let with_stronger = [option, &stronger].concat();
            let contradicts = parse("run", &with_stronger, &[])
                .is_err_and(|error| error.kind() == ErrorKind::ArgumentConflict);
            if !contradicts {
                kept.extend_from_slice(option);
            }
        }
        kept.append(&mut stronger);
        stronger = kept;
    }
    words.append(&mut stronger);
    Ok(words)
}

/// Returns `$XDG_CONFIG_HOME`, or its default.
fn config_folder() -> Option<PathBuf> {
    let set = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    set.or_else(|| env::home_dir().map(|home| home.join(".config")))
}
