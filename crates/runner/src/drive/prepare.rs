//! What a program is started with, in the form in which the kernel takes it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use brigade_sys::launch::Program;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::fcntl_dupfd_cloexec;

use crate::job::Stdin;
use crate::machine::Attempt;
use crate::outcome::StartFailure;

/// What all jobs share.
#[derive(Debug)]
pub(super) struct Preparation {
    null: OwnedFd,
    /// The environment of this process, as `NAME=value`.
    environment: Vec<CString>,
    /// An entry of the environment that all jobs of this run have, and no others.
    mark: String,
    path: Option<OsString>,
    /// The program of the last job: lists mostly run the same one again and again.
    last: Option<(OsString, Program)>,
}

/// What one attempt is started with.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) program: Program,
    pub(super) arguments: Vec<CString>,
    pub(super) folder: Option<CString>,
    pub(super) stdin: OwnedFd,
    /// Variables over those that are inherited, as `NAME=value`.
    variables: Vec<CString>,
    overridden: HashSet<Vec<u8>>,
}

/// A job's number and slot, under the names that GNU parallel gives them.
const NUMBER: &str = "PARALLEL_SEQ";
const SLOT: &str = "PARALLEL_JOBSLOT";
/// The cores that the job is pinned to, in the kernel's list format.
const CORES: &str = "BRIGADE_CORES";

/// What marks the processes of one run, wherever they go.
const RUN: &str = "BRIGADE_RUN";

/// Descriptors of ours are above the standard streams, as the launcher asks for.
const FIRST_OWN: i32 = 3;

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
            null: fcntl_dupfd_cloexec(&null, FIRST_OWN)?,
            environment,
            mark: format!("{RUN}={pid}-{time}"),
            path: std::env::var_os("PATH"),
            last: None,
        })
    }

    /// The entry of the environment by which the processes of this run are known.
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
            // Opening it waits for a writer, which the job is to do, not the run.
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
            .map_err(|_| zero_byte("an argument"))?;
        let program = self.find(&words[0], job)?;
        let mut variables = vec![
            number(NUMBER, attempt.number),
            number(SLOT, slot as u64 + 1),
            CString::new(self.mark.as_str()).map_err(|_| zero_byte("a variable"))?,
            variable(CORES.as_ref(), cores.as_ref()).map_err(|()| zero_byte("a variable"))?,
        ];
        for (name, value) in &job.environment {
            variables.push(variable(name, value).map_err(|()| zero_byte("a variable"))?);
        }
        let folder = job
            .folder
            .as_ref()
            .map(|folder| CString::new(folder.as_os_str().as_bytes()))
            .transpose()
            .map_err(|_| zero_byte("the folder"))?;
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
            .map_err(|_| zero_byte("the program"))?;
        if own_path.is_none() {
            self.last = Some((name.to_owned(), program.clone()));
        }
        Ok(program)
    }

    fn stdin(&self, stdin: &Stdin) -> Result<OwnedFd, StartFailure> {
        let opened = match stdin {
            Stdin::Null => self.null(),
            Stdin::Inherit => {
                fcntl_dupfd_cloexec(io::stdin().as_fd(), FIRST_OWN).map_err(io::Error::from)
            }
            Stdin::File(path) => File::open(path).map(OwnedFd::from),
            Stdin::Bytes(bytes) => in_memory(bytes),
        };
        opened.map_err(|error| {
            let what = match stdin {
                Stdin::File(path) => Cow::from(path.display().to_string()),
                _ => "its input".into(),
            };
            StartFailure::of_io(&format!("cannot open {what}"), &error)
        })
    }
}

impl Prepared {
    /// The whole environment.
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

    /// For people.
    pub(super) fn program_name(&self) -> String {
        self.arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// Bytes as a file: no pipe that somebody would have to feed.
fn in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    use std::io::Seek;
    brigade_sys::file_limit::check(bytes.len() as u64)?;
    let mut file = File::from(memfd_create("stdin", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// Our own standard output or error.
pub(super) fn own_output(index: usize) -> io::Result<OwnedFd> {
    if index == 0 {
        Ok(fcntl_dupfd_cloexec(io::stdout().as_fd(), FIRST_OWN)?)
    } else {
        Ok(fcntl_dupfd_cloexec(io::stderr().as_fd(), FIRST_OWN)?)
    }
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

fn zero_byte(what: &str) -> StartFailure {
    StartFailure::other(format!("{what} contains a zero byte, which no program can be given"))
}
