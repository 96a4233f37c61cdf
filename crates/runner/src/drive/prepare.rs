//! What a program is started with, in the form in which the kernel takes it.

use std::borrow::Cow;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;

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
    environment: Vec<Arc<CStr>>,
    path: Option<OsString>,
    /// The program of the last job: lists mostly run the same one again and again.
    last: Option<(OsString, Arc<Program>)>,
}

/// What one attempt is started with.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) program: Arc<Program>,
    pub(super) arguments: Vec<CString>,
    pub(super) folder: Option<CString>,
    pub(super) stdin: OwnedFd,
    /// As `NAME=value`.
    pub(super) environment: Vec<Arc<CStr>>,
}

/// A job's number and slot, under the names that GNU parallel gives them.
const NUMBER: &str = "PARALLEL_SEQ";
const SLOT: &str = "PARALLEL_JOBSLOT";
/// The cores that the job is pinned to, in the kernel's list format.
const CORES: &str = "BRIGADE_CORES";

/// Descriptors of ours are above the standard streams, as the launcher asks for.
const FIRST_OWN: i32 = 3;

impl Preparation {
    pub(super) fn new() -> io::Result<Self> {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let ours = [NUMBER, SLOT, CORES];
        let environment = std::env::vars_os()
            .filter(|(name, _)| !ours.iter().any(|own| name == own))
            .filter_map(|(name, value)| variable(&name, &value).ok())
            .collect();
        Ok(Self {
            null: fcntl_dupfd_cloexec(&null, FIRST_OWN)?,
            environment,
            path: std::env::var_os("PATH"),
            last: None,
        })
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
        let arguments = words
            .iter()
            .map(|word| CString::new(word.as_bytes()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| zero_byte("an argument"))?;
        let program = self.find(&words[0], job)?;
        let environment = self.environment(attempt, slot, cores)?;
        let folder = job
            .folder
            .as_ref()
            .map(|folder| CString::new(folder.as_os_str().as_bytes()))
            .transpose()
            .map_err(|_| zero_byte("the folder"))?;
        let stdin = self.stdin(&job.stdin)?;
        Ok(Prepared { program, arguments, folder, stdin, environment })
    }

    /// What is inherited, what is ours, and what is the job's own, which goes over both.
    fn environment(
        &self,
        attempt: &Attempt,
        slot: usize,
        cores: &str,
    ) -> Result<Vec<Arc<CStr>>, StartFailure> {
        let own = &attempt.job.environment;
        let is_overridden = |entry: &CStr| {
            let name = entry.to_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
            own.iter().any(|(own, _)| own.as_bytes() == name)
        };
        let inherited = self.environment.iter().filter(|entry| !is_overridden(entry)).cloned();
        let mut environment: Vec<Arc<CStr>> = inherited.collect();
        let (number, slot) = (attempt.number.to_string(), (slot + 1).to_string());
        let ours = [(NUMBER, number.as_str()), (SLOT, &slot), (CORES, cores)];
        let ours = ours.map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
        let own = own.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        for (name, value) in ours.into_iter().chain(own) {
            environment.push(variable(name, value).map_err(|()| zero_byte("a variable"))?);
        }
        Ok(environment)
    }

    fn find(&mut self, name: &OsStr, job: &crate::Job) -> Result<Arc<Program>, StartFailure> {
        let own_path = job.environment.iter().rev().find(|(name, _)| name == "PATH");
        if let (None, Some((last, program))) = (own_path, &self.last)
            && last == name
        {
            return Ok(Arc::clone(program));
        }
        let path = own_path.map(|(_, path)| path).or(self.path.as_ref());
        let program = Program::find(name, path.map(OsString::as_os_str))
            .map_err(|_| zero_byte("the program"))?;
        let program = Arc::new(program);
        if own_path.is_none() {
            self.last = Some((name.to_owned(), Arc::clone(&program)));
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
            StartFailure::other(format!("cannot open {what}: {error}"))
        })
    }
}

/// Bytes as a file: no pipe that somebody would have to feed.
fn in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    use std::io::Seek;
    let mut file = File::from(memfd_create("stdin", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// Our own standard output or error.
pub(super) fn own_output(index: usize) -> io::Result<OwnedFd> {
    if index == 0 {
        Ok(fcntl_dupfd_cloexec(io::stdout().as_fd(), FIRST_OWN)?)
    } else {
        Ok(fcntl_dupfd_cloexec(io::stderr().as_fd(), FIRST_OWN)?)
    }
}

fn variable(name: &OsStr, value: &OsStr) -> Result<Arc<CStr>, ()> {
    let mut entry = name.to_owned().into_vec();
    entry.push(b'=');
    entry.extend_from_slice(value.as_bytes());
    CString::new(entry).map(Arc::from).map_err(drop)
}

fn zero_byte(what: &str) -> StartFailure {
    StartFailure::other(format!("{what} contains a zero byte, which no program can be given"))
}
