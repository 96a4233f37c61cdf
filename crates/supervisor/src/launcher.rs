//! Starts programs by their names.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use brigade_sys::guardian::GroupSlot;
pub use brigade_sys::launch::LaunchSettings;
use brigade_sys::launch::{self, Confinement, FileId, Launch, LaunchError, Program};
use brigade_sys::process::{Process, THIS_PROGRAM};

use crate::command_line::CommandLine;
use crate::error::ContainsNul;

/// Starts programs, each as the leader of a group, in the environment of this process with their
/// own changes.
///
/// The programs are killed when the *thread* that launched them ends: launch from one that outlives
/// them.
#[derive(Debug)]
pub struct Launcher {
    inner: launch::Launcher,
    /// The environment of this process, as `NAME=value`.
    environment: Vec<CString>,
    path: Option<OsString>,
    /// The program of the previous start: most starts are of the same program.
    last: Option<(OsString, Program)>,
}

/// A command line in the form that the kernel takes.
#[derive(Debug)]
pub struct Prepared<'a> {
    line: &'a CommandLine,
    program: Program,
    arguments: Vec<CString>,
    /// The variables that are set, as `NAME=value`.
    variables: Vec<CString>,
    directory: Option<CString>,
}

/// Returns the settings of a worker, which enters its sandbox itself, after its initializer.
/// `doors` lead to its control groups.
pub(crate) fn of_worker<'a>(streams: [BorrowedFd<'a>; 3], doors: &'a [File]) -> LaunchSettings<'a> {
    let confinement = Confinement { doors, ..Confinement::default() };
    LaunchSettings { confinement, is_worker: true, ..LaunchSettings::new(streams) }
}

impl Launcher {
    /// Creates a launcher whose programs inherit the present environment of this process without
    /// the variables `except`.
    pub fn new(except: &[&str]) -> Self {
        let environment = std::env::vars_os()
            .filter(|(name, _)| !except.iter().any(|other| name == other))
            .filter_map(|(name, value)| variable(&name, &value).ok())
            .collect();
        let path = std::env::var_os("PATH");
        Self { inner: launch::Launcher::new(), environment, path, last: None }
    }

    /// Creates a launcher whose programs inherit no environment.
    pub fn without_environment() -> Self {
        Self { environment: Vec::new(), ..Self::new(&[]) }
    }

    /// Prepares a command line, whose program is searched for on the `PATH` that it gets.
    ///
    /// # Errors
    /// If a part of it contains a NUL byte.
    pub fn prepare<'a>(&mut self, line: &'a CommandLine) -> Result<Prepared<'a>, ContainsNul> {
        let name = line.name.as_ref().unwrap_or(&line.program);
        let arguments = [name]
            .into_iter()
            .chain(&line.arguments)
            .map(|word| CString::new(word.as_bytes()))
            .collect::<Result<_, _>>()
            .map_err(|_| ContainsNul("an argument"))?;
        let program = self.find(line)?;
        let set = line.environment.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let variables = set.map(|(name, value)| variable(name, value)).collect::<Result<_, _>>()?;
        let directory = line
            .directory
            .as_ref()
            .map(|directory| CString::new(directory.as_os_str().as_bytes()))
            .transpose()
            .map_err(|_| ContainsNul("the directory"))?;
        Ok(Prepared { line, program, arguments, variables, directory })
    }

    fn find(&mut self, line: &CommandLine) -> Result<Program, ContainsNul> {
        let own_path = line.environment.iter().rev().find(|(name, _)| name == "PATH");
        if let (None, Some((last, program))) = (own_path, &self.last)
            && *last == line.program
        {
            return Ok(program.clone());
        }
        let path = own_path.map_or(self.path.as_ref(), |(_, path)| path.as_ref());
        let program = Program::find(&line.program, path.map(OsString::as_os_str))
            .map_err(|_| ContainsNul("the program"))?;
        if own_path.is_none() {
            self.last = Some((line.program.clone(), program.clone()));
        }
        Ok(program)
    }

    /// Returns the whole environment of a program, each entry with a NUL byte at its end.
    pub(crate) fn environment_of(&self, prepared: &Prepared<'_>) -> Vec<u8> {
        let entries = prepared.environment(&self.environment).into_iter();
        entries.map(CStr::to_bytes_with_nul).collect::<Vec<_>>().concat()
    }

    /// Starts a program, and returns once it is executing. The guardian that has `slot` knows its
    /// group.
    ///
    /// # Errors
    /// [`LaunchError`] has the stage at which the start failed, and the cause. No process is left
    /// then.
    pub fn launch(
        &mut self,
        slot: Option<&GroupSlot>,
        prepared: &Prepared<'_>,
        start: &LaunchSettings<'_>,
    ) -> Result<Process, LaunchError> {
        self.inner.launch(&Launch {
            program: &prepared.program,
            arguments: &prepared.arguments,
            environment: &prepared.environment(&self.environment),
            folder: prepared.directory.as_deref(),
            slot,
            settings: *start,
        })
    }
}

impl Prepared<'_> {
    /// Returns the file that is executed; `None` for this very program, or if there is none.
    pub(crate) fn file_id(&self) -> Option<FileId> {
        if self.line.program == THIS_PROGRAM { None } else { self.program.file_id() }
    }

    /// Returns the whole environment.
    fn environment<'a>(&'a self, inherited: &'a [CString]) -> Vec<&'a CStr> {
        let is_changed = |entry: &CStr| {
            let name = entry.to_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
            self.line.environment.iter().any(|(changed, _)| changed.as_bytes() == name)
        };
        let kept = inherited.iter().map(CString::as_c_str).filter(|entry| !is_changed(entry));
        kept.chain(self.variables.iter().map(CString::as_c_str)).collect()
    }
}

fn variable(name: &OsStr, value: &OsStr) -> Result<CString, ContainsNul> {
    let mut entry = name.to_owned().into_vec();
    entry.push(b'=');
    entry.extend_from_slice(value.as_bytes());
    CString::new(entry).map_err(|_| ContainsNul("a variable"))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::process::Command;

    use brigade_sys::process::Exit;

    use super::*;

    /// Runs a command whose exit code is the result of its checks.
    fn run(command: &Command) -> Exit {
        let null = File::open("/dev/null").unwrap();
        let line = CommandLine::from(command);
        let mut launcher = Launcher::new(&["CARGO_PKG_NAME"]);
        let prepared = launcher.prepare(&line).unwrap();
        let start = LaunchSettings::new([null.as_fd(); 3]);
        launcher.launch(None, &prepared, &start).unwrap().reap().unwrap()
    }

    #[test]
    fn a_program_gets_our_environment_with_its_changes() {
        let script = "test -z \"$CARGO_PKG_NAME$HOME\" -a \"$CARGO_PKG_VERSION\" = changed \
                      -a \"$PATH\" -a \"$PWD\" = /usr";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).env("CARGO_PKG_VERSION", "changed").env_remove("HOME");
        assert_eq!(run(shell.current_dir("/usr")), Exit::Code(0));
    }

    #[test]
    fn a_program_is_searched_for_on_its_own_path() {
        let launch = |path: Option<&str>| {
            let mut command = Command::new("sh");
            match path {
                Some(path) => command.env("PATH", path),
                None => command.env_remove("PATH"),
            };
            let line = CommandLine::from(&command);
            let mut launcher = Launcher::new(&[]);
            // The search on our path is not repeated.
            launcher.prepare(&CommandLine::from(&Command::new("sh"))).unwrap();
            launcher.prepare(&line).unwrap().program
        };
        assert_eq!(
            launch(Some("/a:/b")),
            Program::find("sh".as_ref(), Some("/a:/b".as_ref())).unwrap()
        );
        assert_eq!(launch(None), Program::find("sh".as_ref(), None).unwrap());
    }

    #[test]
    fn a_nul_byte_is_refused() {
        let line = || CommandLine::from(&Command::new("sh"));
        let nul = || OsString::from("a\0b");
        let argument = CommandLine { arguments: vec![nul()], ..line() };
        let variable = CommandLine { environment: vec![("A".into(), Some(nul()))], ..line() };
        let directory = CommandLine { directory: Some(nul().into()), ..line() };
        for (line, part) in
            [(argument, "an argument"), (variable, "a variable"), (directory, "the directory")]
        {
            assert_eq!(Launcher::new(&[]).prepare(&line).unwrap_err(), ContainsNul(part));
        }
    }
}
