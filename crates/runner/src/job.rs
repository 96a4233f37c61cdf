//! A command to run and its settings.

mod command;

use std::any::Any;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::block_streams::BlockStream;
use crate::confinement::Confinement;
use crate::file_part::FilePart;
use crate::input_block::InputBlock;
use crate::output::Output;
pub use command::{Command, quote};

/// A command to run and its settings. Created by [`Job::new`] or [`Job::shell`]; all other settings
/// have defaults, most of them the runner's.
#[derive(Debug, Clone)]
pub struct Job {
    pub(crate) command: Command,
    pub(crate) shell: Option<OsString>,
    /// The number, if it is set.
    pub number: Option<u64>,
    /// The label, if the job has one.
    pub label: Option<String>,
    /// The number of cores, if the job sets it.
    pub cores: Option<usize>,
    /// The resources that the job needs, if it sets any.
    pub needs: Vec<(String, u64)>,
    /// The variables that are set for the job.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory, if the job has one of its own.
    pub folder: Option<PathBuf>,
    /// The standard input.
    pub stdin: Stdin,
    pub(crate) has_input_file: bool,
    pub(crate) output: Option<Output>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) retries: Option<u32>,
    pub(crate) prelude: Option<String>,
    /// The marker that stands for the number of its slot.
    pub slot_marker: Option<OsString>,
    /// The rights and resources that it does without, if it does not follow the runner's setting.
    pub confinement: Option<Arc<Confinement>>,
    data: Option<Arc<dyn Any + Send + Sync>>,
}

/// The shell for lines that do not set their own.
const SHELL: &str = "/bin/sh";

/// The path of the input of a job that gets it as a file.
pub const INPUT_FILE: &str = "/dev/fd/3";

/// The standard input of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stdin {
    /// Nothing: immediate end of file.
    #[default]
    Null,
    /// The standard input of this process. Concurrent jobs share it in no particular way.
    Inherit,
    /// A file.
    File(PathBuf),
    /// These bytes.
    Bytes(Vec<u8>),
    /// Bytes that are freed when the job is over.
    Block(InputBlock),
    /// A part of a file, through a pipe.
    Part(FilePart),
    /// Blocks that arrive while the job runs, through a pipe. No other attempt gets them again.
    Stream(BlockStream),
}

impl Job {
    /// Creates a job that runs a program without arguments. A name without a slash is looked up on
    /// `PATH`.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self::from_command(Command::Argv(vec![program.into()]))
    }

    /// Creates a job that runs a line in `/bin/sh`, with pipes, redirections and variables. Quote
    /// anything that you insert into the line.
    pub fn shell(line: impl Into<OsString>) -> Self {
        Self::from_command(Command::Shell(line.into()))
    }

    fn from_command(command: Command) -> Self {
        Self {
            command,
            shell: None,
            number: None,
            label: None,
            cores: None,
            needs: Vec::new(),
            environment: Vec::new(),
            folder: None,
            stdin: Stdin::Null,
            has_input_file: false,
            output: None,
            deadline: None,
            retries: None,
            prelude: None,
            slot_marker: None,
            confinement: None,
            data: None,
        }
    }

    /// Adds an argument. For a shell line it becomes `$1` and so on.
    #[must_use]
    pub fn arg(self, argument: impl Into<OsString>) -> Self {
        self.args([argument])
    }
}

brigade_sys::setters! {
    impl Job;

    /// Adds arguments. For a shell line they become `$1` and so on.
    pub fn args(self, arguments: impl IntoIterator<Item = impl Into<OsString>>) {
        let arguments = arguments.into_iter().map(Into::into);
        match &mut self.command {
            Command::Argv(words) => words.extend(arguments),
            Command::Shell(line) => {
                let words = [self.shell.take().unwrap_or_else(|| SHELL.into()), "-c".into()];
                let words = words.into_iter().chain([line.clone(), "sh".into()]);
                self.command = Command::Argv(words.chain(arguments).collect());
            }
        }
    }

    /// Sets the shell for a shell line, which is its argument after `-c`. The default is `/bin/sh`.
    pub fn in_shell(self, shell: impl Into<OsString>) { self.shell = Some(shell.into()) }

    /// Sets the number in the job's outcome. The default is one more than the previous job's,
    /// starting at 1.
    pub fn number(self, number: u64) { self.number = Some(number) }

    /// Sets the name shown to people. Two jobs with the same label are duplicates; so are two
    /// unlabeled jobs that run the same command in the same directory and environment.
    pub fn label(self, label: impl Into<String>) { self.label = Some(label.into()) }

    /// Sets the number of cores it needs, at least 1.
    pub fn cores(self, cores: usize) { self.cores = Some(cores) }

    /// Adds an amount of a [resource](crate::Builder::resource) that the job takes while it runs,
    /// instead of what the runner's setting says. Variables of its environment name what it has,
    /// such as `BRIGADE_RESOURCE_GPU=0,3`.
    pub fn needs(self, resource: impl Into<String>, amount: u64) {
        self.needs.push((resource.into(), amount));
    }

    /// Sets an environment variable, in addition to those of this process.
    pub fn env(self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.environment.push((name.into(), value.into()));
    }

    /// Sets the working directory.
    pub fn folder(self, folder: impl Into<PathBuf>) { self.folder = Some(folder.into()) }

    /// Sets its standard input.
    pub fn stdin(self, stdin: Stdin) { self.stdin = stdin }

    /// Gives it its input as the file [`INPUT_FILE`], and an empty standard input. Its children
    /// can open the file as well, unless they close the descriptors that they inherit.
    pub fn input_as_file(self) { self.has_input_file = true }

    /// Sets where its output goes, overriding the runner's setting.
    pub fn output(self, output: Output) { self.output = Some(output) }

    /// Sets the time limit of an attempt, overriding the runner's limit.
    pub fn deadline(self, deadline: Duration) { self.deadline = Some(deadline) }

    /// Sets the rights and resources that it does without, instead of the runner's setting.
    pub fn confinement(self, confinement: Arc<Confinement>) {
        self.confinement = Some(confinement);
    }

    /// Sets the number of additional attempts after a failure, overriding the runner's number.
    pub fn retries(self, retries: u32) { self.retries = Some(retries) }

    /// Sets a line for `/bin/sh` that runs first, such as `. ./env.sh` or `module load gcc`. The
    /// job gets the variables that it exports and the folder that it changes to, and does not run
    /// if it fails. The runner tries each distinct prelude once, with its canary, before any job
    /// that has it.
    pub fn prelude(self, line: impl Into<String>) { self.prelude = Some(line.into()) }

    /// Sets a marker. At the start of an attempt, each occurrence in the job's words is replaced
    /// with the number of its slot.
    pub fn slot_marker(self, marker: impl Into<OsString>) { self.slot_marker = Some(marker.into()) }
}

impl Job {
    /// Attaches data of the caller, which comes back with the job's events and its outcome. It is
    /// no part of what the job does.
    ///
    /// ```
    /// use brigade_runner::{Job, Runner};
    ///
    /// let jobs = [4, 9].map(|row| Job::new("seq").arg(row.to_string()).data(row));
    /// for outcome in Runner::builder().build()?.run_all(jobs)? {
    ///     let row: Option<&i32> = outcome.job.data_as();
    ///     assert!(row.is_some_and(|row| *row == 4 || *row == 9));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn data<T: Any + Send + Sync>(mut self, data: T) -> Self {
        self.data = Some(Arc::new(data));
        self
    }

    /// Returns the attached data, if there is any and it has this type.
    pub fn data_as<T: Any>(&self) -> Option<&T> {
        self.data.as_ref()?.downcast_ref()
    }

    /// Returns the command for this slot, with the slot's number in place of the marker.
    pub fn command_on(&self, slot: usize) -> Command {
        self.with_slot(&slot.to_string())
    }

    /// Returns the command with `slot` in place of the marker.
    pub fn with_slot(&self, slot: &str) -> Command {
        let on_slot = |word: &OsString| match &self.slot_marker {
            Some(marker) => replace(word, marker, slot),
            None => word.clone(),
        };
        match &self.command {
            Command::Argv(words) => Command::Argv(words.iter().map(on_slot).collect()),
            Command::Shell(line) => Command::Shell(on_slot(line)),
        }
    }

    /// Returns the words to execute, including the shell and the prelude.
    pub(crate) fn words_on(&self, slot: usize) -> Vec<OsString> {
        self.words_of(self.command_on(slot))
    }

    /// Returns a job that does the same with a single command, without a shell or prelude of its
    /// own. Another machine may run it.
    #[must_use]
    pub fn plain(&self) -> Self {
        let command = Command::Argv(self.words_of(self.command.clone()));
        Self { command, shell: None, prelude: None, ..self.clone() }
    }

    /// Returns a job that does the same on the slot with this number, wherever it runs.
    #[must_use]
    pub fn on_slot(&self, slot: &str) -> Self {
        Self { command: self.with_slot(slot), slot_marker: None, ..self.clone() }
    }

    fn words_of(&self, command: Command) -> Vec<OsString> {
        let mut words = match command {
            Command::Argv(words) => words,
            Command::Shell(line) => {
                vec![self.shell.clone().unwrap_or_else(|| SHELL.into()), "-c".into(), line]
            }
        };
        if let Some(line) = &self.prelude {
            let script = format!("{{\n{line}\n}} || exit\nexec \"$@\"");
            words.splice(0..0, ["/bin/sh", "-c", &script, "sh"].map(OsString::from));
        }
        words
    }

    /// Returns everything but the command that determines what the job does: its directory,
    /// variables, input, prelude and shell, in an encoding that is the same in every version of
    /// this library. Two jobs do the same if both their commands and these bytes are equal.
    pub fn context_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |tag: u8, parts: &[&[u8]]| {
            bytes.push(tag);
            for part in parts {
                bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
                bytes.extend_from_slice(part);
            }
        };
        if let Some(folder) = &self.folder {
            put(b'f', &[folder.as_os_str().as_bytes()]);
        }
        for (name, value) in &self.environment {
            put(b'e', &[name.as_bytes(), value.as_bytes()]);
        }
        match &self.stdin {
            Stdin::Null => {}
            Stdin::Inherit => put(b'i', &[]),
            Stdin::File(path) => put(b's', &[path.as_os_str().as_bytes()]),
            Stdin::Bytes(input) => put(b'b', &[input]),
            Stdin::Block(block) => {
                put(b'l', &[&block.len().to_le_bytes(), &block.identity().to_le_bytes()]);
            }
            Stdin::Stream(_) => put(b't', &[]),
            Stdin::Part(part) => {
                let [start, end] = [part.range.start, part.range.end].map(u64::to_le_bytes);
                put(b'r', &[part.path.as_os_str().as_bytes(), &start, &end, &part.header]);
            }
        }
        if self.has_input_file {
            put(b'd', &[]);
        }
        if let Some(prelude) = &self.prelude {
            put(b'p', &[prelude.as_bytes()]);
        }
        if let (Command::Shell(_), Some(shell)) = (&self.command, &self.shell) {
            put(b'h', &[shell.as_bytes()]);
        }
        bytes
    }

    /// Returns the command.
    pub fn command(&self) -> &Command {
        &self.command
    }

    /// Returns `true` if other jobs may wait for it to run.
    pub(crate) fn is_in_step(&self) -> bool {
        matches!(&self.stdin, Stdin::Stream(stream) if stream.is_in_step())
    }

    /// Frees input that no attempt will need any more.
    pub(crate) fn release_stdin(&self) {
        match &self.stdin {
            Stdin::Block(block) => block.release(),
            Stdin::Stream(stream) => stream.leave(),
            _ => {}
        }
    }
}

/// Writes the label, or the command quoted for a shell.
impl fmt::Display for Job {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.label {
            Some(label) => formatter.pad(label),
            None => self.command.fmt(formatter),
        }
    }
}

fn replace(word: &OsStr, marker: &OsStr, with: &str) -> OsString {
    let (mut rest, marker) = (word.as_bytes(), marker.as_bytes());
    let mut replaced = Vec::with_capacity(rest.len());
    while !marker.is_empty()
        && let Some(at) = rest.windows(marker.len()).position(|window| window == marker)
    {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(with.as_bytes());
        rest = &rest[at + marker.len()..];
    }
    replaced.extend_from_slice(rest);
    OsString::from_vec(replaced)
}

#[cfg(test)]
mod tests;
