//! The description of a job in a file.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use brigade::runner::{Confinement, Job, Stdin};
use serde::Deserialize;

use crate::arguments::{LimitOptions, SandboxOptions, parse_size};
use crate::confine::{self, Confining, SandboxLevel};
use crate::each::Each;

/// The description of a job in a TOML file or on a line of JSON. Missing fields are taken from the
/// defaults of the file, then from the options of the command.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Specification {
    /// A program and its arguments.
    command: Option<Vec<String>>,
    /// A line for the shell; excludes `command`.
    shell: Option<String>,
    label: Option<String>,
    cores: Option<NonZeroUsize>,
    /// Amounts of resources.
    needs: Option<BTreeMap<String, Size>>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    folder: Option<PathBuf>,
    /// A file to use as standard input.
    stdin: Option<PathBuf>,
    /// The text to use as standard input; excludes `stdin`.
    input: Option<String>,
    timeout: Option<Time>,
    retries: Option<u32>,
    prelude: Option<String>,
    /// The level of its sandbox.
    sandbox: Option<SandboxLevel>,
    /// Paths that it may read there.
    read: Option<Vec<PathBuf>>,
    /// Paths that it may read and change there.
    write: Option<Vec<PathBuf>>,
    /// Programs, or folders of programs, that it may execute there.
    execute: Option<Vec<PathBuf>>,
    /// TCP ports that it may connect to there.
    connect: Option<Vec<u16>>,
    /// System calls that it may make there.
    allow_call: Option<Vec<String>>,
    /// All other files are hidden there.
    isolate: Option<bool>,
    /// Parts of its sandbox may be left out.
    best_effort: Option<bool>,
    /// The most memory that it may take.
    memory: Option<Size>,
    /// The longest processor time.
    cpu_time: Option<Time>,
    /// The longest file that it may write.
    file_size: Option<Size>,
    /// The most processes and threads that it may have.
    processes: Option<u64>,
    /// The confinement of jobs that have only the default one.
    #[serde(skip)]
    confinement: OnceLock<Made>,
}

/// A confinement, or the reason why there is none.
type Made = Result<Option<Arc<Confinement>>, String>;

/// A number of bytes, or a text such as `"512M"`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "RawSize")]
struct Size(u64);

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number of bytes, or a size such as \"512M\"")]
enum RawSize {
    Bytes(u64),
    Text(String),
}

impl TryFrom<RawSize> for Size {
    type Error = String;

    fn try_from(raw: RawSize) -> Result<Self, String> {
        match raw {
            RawSize::Bytes(bytes) => Ok(Self(bytes)),
            RawSize::Text(text) => parse_size(&text).map(Self),
        }
    }
}

/// Seconds, or a duration with units: `90`, `1.5`, `"2m 30s"`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "RawTime")]
struct Time(Duration);

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected seconds, or a duration such as \"1m 30s\"")]
enum RawTime {
    Seconds(f64),
    Text(String),
}

impl TryFrom<RawTime> for Time {
    type Error = String;

    fn try_from(raw: RawTime) -> Result<Self, String> {
        let time = match raw {
            RawTime::Seconds(seconds) => Duration::try_from_secs_f64(seconds)
                .map_err(|_| format!("a time cannot be {seconds} seconds"))?,
            RawTime::Text(text) => humantime::parse_duration(&text).map_err(|_| {
                format!("`{text:.100}` is not a duration, such as \"90s\" or \"1m 30s\"")
            })?,
        };
        if time.is_zero() {
            return Err("a time must be greater than zero".to_owned());
        }
        Ok(Self(time))
    }
}

impl Specification {
    /// Converts to a job, taking missing fields from `defaults`, and then from the command, whose
    /// own confinement is for jobs that have none.
    pub(crate) fn into_job(self, defaults: &Self, command: &Confining) -> Result<Job, String> {
        let own = self.has_confinement().then(|| self.confine(defaults, command));
        let job = match (self.command, self.shell) {
            (Some(words), None) => {
                let mut words = words.into_iter();
                let program = words.next().filter(|program| !program.is_empty());
                Job::new(program.ok_or("`command` must name a program")?).args(words)
            }
            (None, Some(line)) => Job::shell(line),
            (Some(_), Some(_)) => {
                return Err("`command` and `shell` cannot be used together".to_owned());
            }
            (None, None) => {
                return Err(
                    "expected `command = [\"program\", \"argument\"]` or `shell = \"line\"`"
                        .to_owned(),
                );
            }
        };
        let stdin = match (self.stdin.or_else(|| defaults.stdin.clone()), self.input) {
            (Some(_), Some(_)) => {
                return Err("`stdin` and `input` cannot be used together".to_owned());
            }
            (Some(path), None) => Stdin::File(path),
            (None, Some(text)) => Stdin::Bytes(text.into_bytes()),
            (None, None) => Stdin::Null,
        };
        let confinement = own.unwrap_or_else(|| defaults.default_confinement(command))?;
        let mut env = defaults.env.clone();
        env.extend(self.env);
        if let Some(name) = env.keys().find(|it| it.is_empty() || it.contains(['=', '\0'])) {
            return Err(format!("`{name}` is not a valid variable name"));
        }
        let needs = self.needs.or_else(|| defaults.needs.clone()).into_iter().flatten();
        Ok(job
            .stdin(stdin)
            .each(self.label, Job::label)
            .each(self.cores.or(defaults.cores), |job, cores| job.cores(cores.get()))
            .each(needs, |job, (name, Size(amount))| job.needs(name, amount))
            .each(self.folder.or_else(|| defaults.folder.clone()), Job::folder)
            .each(self.timeout.or(defaults.timeout), |job, Time(limit)| job.deadline(limit))
            .each(self.retries.or(defaults.retries), Job::retries)
            .each(self.prelude.or_else(|| defaults.prelude.clone()), Job::prelude)
            .each(confinement, Job::confinement)
            .each(env, |job, (name, value)| job.env(name, value)))
    }

    fn has_confinement(&self) -> bool {
        let rights = self.read.is_some() || self.write.is_some() || self.execute.is_some();
        let rights = rights || self.allow_call.is_some() || self.isolate.is_some();
        let rights = rights || self.connect.is_some() || self.best_effort.is_some();
        let limits = self.memory.is_some() || self.cpu_time.is_some();
        let limits = limits || self.file_size.is_some() || self.processes.is_some();
        rights || self.sandbox.is_some() || limits
    }

    /// Makes the confinement of a job, with missing fields from `defaults` and the command.
    fn confine(&self, defaults: &Self, (sandbox, limits): &Confining) -> Made {
        fn list<T: Clone>(own: Option<&Vec<T>>, other: Option<&Vec<T>>, command: &[T]) -> Vec<T> {
            own.or(other).map_or(command, Vec::as_slice).to_vec()
        }
        if sandbox.differs() {
            return Err(
                "replacement strings in `--read`, `--write` and `--execute` do not go with \
                        sandboxes and limits of a job file: give the paths there"
                    .to_owned(),
            );
        }
        let sandbox = SandboxOptions {
            sandbox: self.sandbox.or(defaults.sandbox).or(sandbox.sandbox),
            read: list(self.read.as_ref(), defaults.read.as_ref(), &sandbox.read),
            write: list(self.write.as_ref(), defaults.write.as_ref(), &sandbox.write),
            execute: list(self.execute.as_ref(), defaults.execute.as_ref(), &sandbox.execute),
            connect: list(self.connect.as_ref(), defaults.connect.as_ref(), &sandbox.connect),
            allow_call: list(
                self.allow_call.as_ref(),
                defaults.allow_call.as_ref(),
                &sandbox.allow_call,
            ),
            isolate: self.isolate.or(defaults.isolate).unwrap_or(sandbox.isolate),
            best_effort: self.best_effort.or(defaults.best_effort).unwrap_or(sandbox.best_effort),
        };
        let memory = self.memory.or(defaults.memory).map(|Size(bytes)| bytes);
        let time = self.cpu_time.or(defaults.cpu_time).map(|Time(time)| time);
        let file_size = self.file_size.or(defaults.file_size).map(|Size(bytes)| bytes);
        let limits = LimitOptions {
            memory: memory.or(limits.memory),
            cpu_time: time.or(limits.cpu_time),
            file_size: file_size.or(limits.file_size),
            processes: self.processes.or(defaults.processes).or(limits.processes),
        };
        confine::confinement(&sandbox, limits)
    }

    /// Returns the confinement of jobs that set nothing of their own, which is made once.
    fn default_confinement(&self, command: &Confining) -> Made {
        if !self.has_confinement() {
            return Ok(None);
        }
        self.confinement.get_or_init(|| self.confine(self, command)).clone()
    }

    /// Returns the name of a field that is not allowed as a default, as it would be the same for
    /// all jobs.
    pub(crate) fn check_defaults(&self) -> Result<(), &'static str> {
        let own = [
            ("command", self.command.is_some()),
            ("shell", self.shell.is_some()),
            ("label", self.label.is_some()),
            ("input", self.input.is_some()),
        ];
        match own.into_iter().find(|(_, is_set)| *is_set) {
            Some((field, _)) => Err(field),
            None => Ok(()),
        }
    }
}
