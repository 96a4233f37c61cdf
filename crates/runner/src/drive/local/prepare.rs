//! Prepares an attempt: makes a command line of its job, and opens its standard input.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use brigade_supervisor::{CommandLine, Launcher};
use brigade_sys::descriptors::{above_streams, memory_file};
use brigade_sys::guardian::Guardian;

use super::feeder::Feeder;
use crate::file_part::FilePart;
use crate::job::Stdin;
use crate::machine::Attempt;
use crate::needs::ResourceShare;
use crate::outcome::StartFailure;
use crate::stopper::Stopper;

/// Data shared by all jobs of a run.
#[derive(Debug)]
pub(super) struct Preparation {
    null: OwnedFd,
    /// The value of [`RUN`] that all jobs of this run have, and no other process has.
    run: String,
    /// Gives jobs parts of files and blocks.
    pub(super) feeder: Feeder,
    /// A variable for the number of a job's slot, from 0.
    slot_variable: Option<OsString>,
}

/// Variables for a job's number and slot, with GNU parallel's names.
const NUMBER: &str = "PARALLEL_SEQ";
const SLOT: &str = "PARALLEL_JOBSLOT";
/// Variable for the cores that the job is pinned to, in the kernel's list format.
const CORES: &str = "BRIGADE_CORES";

/// Variable that marks all processes of a run, even those that leave their group.
const RUN: &str = "BRIGADE_RUN";

impl Preparation {
    pub(super) fn new(slot_variable: Option<OsString>, stopper: Stopper) -> io::Result<Self> {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let (pid, time) = (std::process::id(), brigade_sys::clock::now().as_nanos());
        let run = format!("{pid}-{time}");
        let feeder = Feeder::new(stopper);
        // The launcher requires of all descriptors that they are above the streams.
        Ok(Self { null: above_streams(&null)?, run, feeder, slot_variable })
    }

    /// Returns the launcher of the jobs, and starts their guardian.
    pub(super) fn launcher(&self, slots: usize) -> io::Result<(Launcher, Guardian)> {
        let launcher = Launcher::new(&[NUMBER, SLOT, CORES, RUN]);
        Ok((launcher, Guardian::start(slots, &format!("{RUN}={}", self.run))?))
    }

    pub(super) fn null(&self) -> io::Result<OwnedFd> {
        self.null.try_clone()
    }

    /// Returns the command line of an attempt, and its standard input.
    pub(super) fn command_line<'a>(
        &self,
        attempt: &'a Attempt,
        slot: usize,
        cores: String,
        share: Option<&ResourceShare>,
    ) -> (CommandLine, &'a Stdin) {
        let job = &attempt.job;
        let mut words = job.words_on(slot + 1);
        let stdin = match &job.stdin {
            // Opening a named pipe waits for a writer. The job must wait for it, not the run.
            Stdin::File(path) if is_pipe(path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                let shell = ["/bin/sh", "-c", "exec \"$@\" < \"$0\""].map(OsString::from);
                words.splice(0..0, shell.into_iter().chain([path.into_os_string()]));
                &Stdin::Null
            }
            stdin => stdin,
        };
        if job.has_input_file {
            // The descriptor of `INPUT_FILE`.
            let script = "exec 3<&0 < /dev/null && exec \"$@\"";
            words.splice(0..0, ["/bin/sh", "-c", script, "sh"].map(OsString::from));
        }
        let own = [
            (NUMBER, attempt.number.to_string()),
            (SLOT, (slot + 1).to_string()),
            (RUN, self.run.clone()),
            (CORES, cores),
        ];
        let own = own.map(|(name, value)| (name.into(), Some(value.into())));
        let granted = share.into_iter().flat_map(|share| &share.variables);
        let granted = granted.map(|(name, value)| (name.into(), Some(value.into())));
        let from_zero = self.slot_variable.as_ref();
        let from_zero = from_zero.map(|name| (name.clone(), Some(slot.to_string().into())));
        let set = job.environment.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
        let line = CommandLine {
            program: words.remove(0),
            name: None,
            arguments: words,
            environment: own.into_iter().chain(granted).chain(from_zero).chain(set).collect(),
            directory: job.folder.clone(),
        };
        (line, stdin)
    }

    /// Opens the standard input of the job with this number.
    pub(super) fn stdin(&mut self, number: u64, stdin: &Stdin) -> Result<OwnedFd, StartFailure> {
        let opened = match stdin {
            Stdin::Null => self.null(),
            Stdin::Inherit => above_streams(io::stdin()),
            Stdin::File(path) => File::open(path).map(OwnedFd::from),
            Stdin::Bytes(bytes) => memory_file("stdin", bytes).map(OwnedFd::from),
            Stdin::Block(block) => block.open().map(OwnedFd::from),
            Stdin::Part(part) => self.feeder.part(number, part),
            Stdin::Stream(stream) => self.feeder.stream(number, stream),
        };
        opened.map_err(|error| {
            let what = match stdin {
                Stdin::File(path) | Stdin::Part(FilePart { path, .. }) => {
                    Cow::from(path.display().to_string())
                }
                _ => "its standard input".into(),
            };
            StartFailure::of_io(&format!("cannot open {what}"), &error)
        })
    }
}

fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}
