//! A command line that xtask runs, and that prints in a form to paste into a shell.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fmt, io};

use crate::{checkout, usage};

static KEEPS_NOTHING: AtomicBool = AtomicBool::new(false);

/// Makes cargo keep no incremental data from now on, which costs time and space in a build that
/// nobody repeats after each change. Such builds lie beside the others in the target folder.
pub(crate) fn keep_no_incremental_data() {
    KEEPS_NOTHING.store(true, Ordering::Relaxed);
}

/// A call of cargo, or of another program, with its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invocation {
    program: String,
    environment: Vec<(String, String)>,
    arguments: Vec<String>,
    /// The workspace, unless another one is set.
    folder: Option<PathBuf>,
    /// `true` for a build of cargo whose units are counted.
    is_counted: bool,
}

impl Invocation {
    /// Returns a call of cargo. Splits `arguments` at white space, which xtask's own arguments
    /// never contain.
    pub(crate) fn cargo(arguments: &str) -> Self {
        Self::new("cargo", arguments)
    }

    /// Returns a call of rustup, which runs other toolchains. Splits `arguments` like [`cargo`].
    ///
    /// [`cargo`]: Self::cargo
    pub(crate) fn rustup(arguments: &str) -> Self {
        Self::new("rustup", arguments)
    }

    /// Returns a call of Debian's package manager. Splits `arguments` like [`cargo`].
    ///
    /// [`cargo`]: Self::cargo
    pub(crate) fn apt_get(arguments: &str) -> Self {
        Self::new("apt-get", arguments).variable("DEBIAN_FRONTEND", "noninteractive")
    }

    /// Returns a call of git. Splits `arguments` like [`cargo`].
    ///
    /// [`cargo`]: Self::cargo
    pub(crate) fn git(arguments: &str) -> Self {
        Self::new("git", arguments)
    }

    /// Returns a call of the shell.
    #[cfg(test)]
    pub(crate) fn shell() -> Self {
        Self::new("sh", "")
    }

    /// Returns a call of a program that was built.
    pub(crate) fn program(path: &Path) -> Self {
        Self::new(&path.to_string_lossy(), "")
    }

    /// Returns the command that removes all symbols from a program.
    pub(crate) fn strip(path: &Path) -> Self {
        Self::new("strip", "").arguments([path.to_string_lossy().into_owned()])
    }

    fn new(program: &str, arguments: &str) -> Self {
        Self {
            program: program.to_owned(),
            environment: Vec::new(),
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            folder: None,
            is_counted: false,
        }
    }

    /// Compiles packages of the workspace with a script of xtask, and their dependencies as always.
    pub(crate) fn wrapped(self, script: &str) -> Self {
        let script = checkout::root().join("xtask").join(script);
        let wrapper = format!("build.rustc-workspace-wrapper=\"{}\"", script.display());
        self.arguments(["--config".to_owned(), wrapper])
    }

    /// Counts the units that this call of cargo compiles.
    pub(crate) fn counted(mut self) -> Self {
        self.is_counted = true;
        self
    }

    pub(crate) fn arguments(mut self, more: impl IntoIterator<Item = String>) -> Self {
        self.arguments.extend(more);
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the folder in which the command runs.
    pub(crate) fn folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// Runs the command with the caller's terminal, or what stands in for it in this thread; any
    /// exit status but success is an error.
    pub(crate) fn run(&self) -> Result<(), String> {
        let status = usage::run(&self.command(), self.is_counted);
        let status = status.map_err(|error| self.cannot_start(&error))?;
        if status.success() { Ok(()) } else { Err(format!("`{self}` failed: {status}")) }
    }

    /// Runs the command and returns its standard output.
    pub(crate) fn output(&self) -> Result<String, String> {
        let output = self
            .command()
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| self.cannot_start(&error))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(format!("`{self}` failed: {}", output.status))
        }
    }

    /// Runs a test, and returns what it printed and whether it succeeded.
    ///
    /// It prints into files: a process that a crashed test leaves would keep a pipe open.
    pub(crate) fn tested(&self) -> Result<(String, bool), String> {
        let paths =
            ["out", "err"].map(|end| checkout::target_folder().join(format!("tested.{end}")));
        let describe = |error: io::Error| format!("cannot keep the output of `{self}`: {error}");
        let create = |path: &PathBuf| File::create(path).map_err(describe);
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(create(&paths[0])?).stderr(create(&paths[1])?);
        let status = command.status().map_err(|error| self.cannot_start(&error))?;
        let mut printed = String::new();
        for path in &paths {
            let bytes = fs::read(path).map_err(describe)?;
            printed += &String::from_utf8_lossy(&bytes);
            let _ = fs::remove_file(path);
        }
        Ok((printed, status.success()))
    }

    /// Returns `true` if the command starts and succeeds, to find out if a tool is installed.
    pub(crate) fn succeeds(&self) -> bool {
        self.command()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    fn command(&self) -> Command {
        // Cargo sets this variable to its own path, so every step uses the pinned toolchain.
        let cargo = std::env::var_os("CARGO").filter(|_| self.program == "cargo");
        let program = cargo.unwrap_or_else(|| self.program.clone().into());
        let mut command = Command::new(program);
        let (subcommand, arguments) = self.arguments.split_at(usize::from(self.is_counted));
        let messages = self.is_counted.then_some("--message-format=json-render-diagnostics");
        if self.program == "cargo" && KEEPS_NOTHING.load(Ordering::Relaxed) {
            command.env("CARGO_INCREMENTAL", "0");
        }
        // What cargo says of this package would be news to build scripts, which run again then.
        for (name, _) in std::env::vars_os() {
            let is_of_package =
                |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
            if name.to_str().is_some_and(is_of_package) {
                command.env_remove(name);
            }
        }
        command
            .args(subcommand)
            .args(messages)
            .args(arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder.clone().unwrap_or_else(checkout::root));
        command
    }

    fn cannot_start(&self, error: &io::Error) -> String {
        format!("`{self}` cannot be started: {error}")
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(formatter, "{name}={} ", quoted(value))?;
        }
        formatter.write_str(&self.program)?;
        for argument in &self.arguments {
            write!(formatter, " {}", quoted(argument))?;
        }
        Ok(())
    }
}

/// Puts single quotes around what a shell would split or expand.
fn quoted(text: &str) -> String {
    let plain =
        |character: char| character.is_ascii_alphanumeric() || "-_=./:,+".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::Invocation;

    #[test]
    fn an_invocation_prints_as_a_shell_command() {
        let invocation = Invocation::cargo("test -p brigade-wire")
            .variable("RUSTFLAGS", "--cfg loom")
            .arguments(["it's".to_owned()]);
        assert_eq!(
            invocation.to_string(),
            r"RUSTFLAGS='--cfg loom' cargo test -p brigade-wire 'it'\''s'"
        );
    }

    #[test]
    fn a_counted_build_prints_as_one_that_is_not() {
        let build = || Invocation::cargo("build -p brigade");
        assert_eq!(build().counted().to_string(), build().to_string());
        let arguments: Vec<_> =
            build().counted().command().get_args().map(ToOwned::to_owned).collect();
        assert_eq!(
            arguments,
            ["build", "--message-format=json-render-diagnostics", "-p", "brigade"]
        );
    }

    #[test]
    fn a_failure_names_the_command() {
        let failure = Invocation::cargo("no-such-subcommand-of-cargo").output().unwrap_err();
        assert!(failure.contains("cargo no-such-subcommand-of-cargo"), "{failure}");
        assert!(!Invocation::cargo("no-such-subcommand-of-cargo").succeeds());
    }
}
