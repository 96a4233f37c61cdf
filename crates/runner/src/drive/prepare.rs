//! Prepares an attempt: converts program, arguments and environment to the form that the kernel
//! takes.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use brigade_sys::descriptors::{above_streams, memory_file};
use brigade_sys::launch::Program;

use crate::job::Stdin;
use crate::machine::Attempt;
use crate::outcome::StartFailure;

/// Data shared by all jobs of a run.
#[derive(Debug)]
pub(super) struct Preparation {
    null: OwnedFd,
    /// The environment of this process, as `NAME=value`.
    environment: Vec<CString>,
    /// An environment entry that all jobs of this run have, and no other process has.
    mark: String,
    path: Option<OsString>,
    /// The program of the previous job: most lists run the same program repeatedly.
    last: Option<(OsString, Program)>,
}

/// The prepared form of one attempt.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) program: Program,
    pub(super) arguments: Vec<CString>,
    pub(super) folder: Option<CString>,
    pub(super) stdin: OwnedFd,
    /// The job's own variables, as `NAME=value`.
    variables: Vec<CString>,
    overridden: HashSet<Vec<u8>>,
}

/// Variables for a job's number and slot, with GNU parallel's names.
const NUMBER: &str = "PARALLEL_SEQ";
const SLOT: &str = "PARALLEL_JOBSLOT";
/// Variable for the cores that the job is pinned to, in the kernel's list format.
const CORES: &str = "BRIGADE_CORES";

/// Variable that marks all processes of a run, even those that leave their group.
const RUN: &str = "BRIGADE_RUN";

impl Preparation {
    pub(super) fn new() -> io::Result<Self> {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let ours = [NUMBER, SLOT, CORES, RUN];
        let (pid, time) = (std::process::id(), brigade_sys::clock::now().as_nanos());
        let environment = std::env::vars_os()
            .filter(|(name, _)| !ours.iter().any(|own| name == own))
            .filter_map(|(name, value)| variable(&name, &value).ok())
            .collect();
        Ok(Self {
            // The launcher requires it of all descriptors.
            null: above_streams(&null)?,
            environment,
            mark: format!("{RUN}={pid}-{time}"),
            path: std::env::var_os("PATH"),
            last: None,
        })
    }

    /// Returns the environment entry that marks the processes of this run.
    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    pub(super) fn inherited(&self) -> &[CString] {
        &self.environment
    }

    pub(super) fn null(&self) -> io::Result<OwnedFd> {
        self.null.try_clone()
    }

    pub(super) fn prepare(
        &mut self,
        attempt: &Attempt,
        slot: usize,
        cores: &str,
    ) -> Result<Prepared, StartFailure> {
        let job = &attempt.job;
        let mut words = job.words_on(slot + 1);
        if let Some(line) = &job.prelude {
            let script = format!("{{\n{line}\n}} || exit\nexec \"$@\"");
            words.splice(0..0, ["/bin/sh", "-c", &script, "sh"].map(OsString::from));
        }
        let input = match &job.stdin {
            // Opening a named pipe waits for a writer. The job must wait for it, not the run.
            Stdin::File(path) if is_pipe(path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                let shell = ["/bin/sh", "-c", "exec \"$@\" < \"$0\""].map(OsString::from);
                words.splice(0..0, shell.into_iter().chain([path.into_os_string()]));
                &Stdin::Null
            }
            input => input,
        };
        let arguments = words
            .iter()
            .map(|word| CString::new(word.as_bytes()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| nul_byte("an argument"))?;
        let program = self.find(&words[0], job)?;
        let mut variables = vec![
            number(NUMBER, attempt.number),
            number(SLOT, slot as u64 + 1),
            CString::new(self.mark.as_str()).map_err(|_| nul_byte("a variable"))?,
            variable(CORES.as_ref(), cores.as_ref()).map_err(|()| nul_byte("a variable"))?,
        ];
        for (name, value) in &job.environment {
            variables.push(variable(name, value).map_err(|()| nul_byte("a variable"))?);
        }
        let folder = job
            .folder
            .as_ref()
            .map(|folder| CString::new(folder.as_os_str().as_bytes()))
            .transpose()
            .map_err(|_| nul_byte("the directory"))?;
        let overridden = job.environment.iter().map(|(name, _)| name.as_bytes().to_vec()).collect();
        let stdin = self.stdin(input)?;
        Ok(Prepared { program, arguments, folder, stdin, variables, overridden })
    }

    fn find(&mut self, name: &OsStr, job: &crate::Job) -> Result<Program, StartFailure> {
        let own_path = job.environment.iter().rev().find(|(name, _)| name == "PATH");
        if let (None, Some((last, program))) = (own_path, &self.last)
            && last == name
        {
            return Ok(program.clone());
        }
        let path = own_path.map(|(_, path)| path).or(self.path.as_ref());
        let program = Program::find(name, path.map(OsString::as_os_str))
            .map_err(|_| nul_byte("the program"))?;
        if own_path.is_none() {
            self.last = Some((name.to_owned(), program.clone()));
        }
        Ok(program)
    }

    fn stdin(&self, stdin: &Stdin) -> Result<OwnedFd, StartFailure> {
        let opened = match stdin {
            Stdin::Null => self.null(),
            Stdin::Inherit => above_streams(io::stdin()),
            Stdin::File(path) => File::open(path).map(OwnedFd::from),
            Stdin::Bytes(bytes) => memory_file("stdin", bytes).map(OwnedFd::from),
        };
        opened.map_err(|error| {
            let what = match stdin {
                Stdin::File(path) => Cow::from(path.display().to_string()),
                _ => "its standard input".into(),
            };
            StartFailure::of_io(&format!("cannot open {what}"), &error)
        })
    }
}

impl Prepared {
    /// Returns the whole environment.
    pub(super) fn environment<'a>(&'a self, inherited: &'a [CString]) -> Vec<&'a CStr> {
        let is_overridden = |entry: &CStr| {
            let name = entry.to_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
            self.overridden.contains(name)
        };
        inherited
            .iter()
            .map(CString::as_c_str)
            .filter(|entry| self.overridden.is_empty() || !is_overridden(entry))
            .chain(self.variables.iter().map(CString::as_c_str))
            .collect()
    }

    /// Returns the program's name for messages.
    pub(super) fn program_name(&self) -> String {
        self.arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// Returns a copy of our standard output or error.
pub(super) fn own_output(index: usize) -> io::Result<OwnedFd> {
    if index == 0 { above_streams(io::stdout()) } else { above_streams(io::stderr()) }
}

fn variable(name: &OsStr, value: &OsStr) -> Result<CString, ()> {
    let mut entry = name.to_owned().into_vec();
    entry.push(b'=');
    entry.extend_from_slice(value.as_bytes());
    CString::new(entry).map_err(drop)
}

fn number(name: &str, value: u64) -> CString {
    CString::new(format!("{name}={value}")).unwrap_or_default()
}

fn nul_byte(what: &str) -> StartFailure {
    StartFailure::other(format!("{what} contains a NUL byte, which cannot be passed to a program"))
}
