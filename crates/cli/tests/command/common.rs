//! Support for tests that run the real command in a directory of its own.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use brigade_testkit::{processes, wait_until};
use tempfile::TempDir;

/// A temporary directory in which the command runs.
pub(crate) struct TestDir(TempDir);

/// The output of a command.
pub(crate) struct RunOutput {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A test that takes longer than this hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

impl TestDir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("disk");
        path
    }

    /// Creates a named pipe. Who opens it for reading waits until it is opened for writing.
    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
        path
    }

    /// Runs a command line in a terminal, and copies to the file `shown` what is shown there.
    pub(crate) fn show(&self, line: &str) -> String {
        let mut terminal = Command::new("script");
        terminal.args(["-qfc", line, "shown"]).env("TERM", "xterm").stdin(Stdio::null());
        terminal.current_dir(self.path("")).env("XDG_RUNTIME_DIR", self.path(""));
        terminal.stdout(Stdio::null()).status().expect("script");
        self.read("shown")
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_brigade"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        // Runs of other tests must not wait for the cores of this one.
        command.env("XDG_RUNTIME_DIR", self.0.path()).env_remove("BRIGADE_CORES");
        // Defaults of the user who runs the tests do not count.
        command.env("XDG_CONFIG_HOME", self.path("config")).env_remove("BRIGADE_OPTIONS");
        command
    }

    /// Runs `brigade run` with these arguments.
    pub(crate) fn run(&self, arguments: &[&str]) -> RunOutput {
        self.run_with(arguments, b"")
    }

    /// Runs `brigade run` with these arguments and this standard input.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> RunOutput {
        let arguments: Vec<&str> = ["run"].into_iter().chain(arguments.iter().copied()).collect();
        let mut command = self.command(&arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("brigade");
        let mut stdin = child.stdin.take().expect("piped");
        let input = input.to_vec();
        let feeder = std::thread::spawn(move || {
            // A run that stops early does not read all of it.
            let _ = stdin.write_all(&input);
        });
        let ran = child.wait_with_output().expect("brigade").into();
        feeder.join().expect("no panic");
        ran
    }

    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("brigade")
    }
}

impl From<Output> for RunOutput {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl RunOutput {
    /// Returns the lines of standard output, sorted.
    pub(crate) fn lines(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.stdout.lines().collect();
        lines.sort_unstable();
        lines
    }
}

/// Returns `count` lines, each made from its number, which starts at 1.
pub(crate) fn numbered(count: usize, line: impl Fn(usize) -> String) -> String {
    (1..=count).map(line).collect::<Vec<_>>().concat()
}

/// Waits until `is_done` returns `true`.
pub(crate) fn until(what: &str, is_done: impl FnMut() -> bool) {
    wait_until(what, PATIENCE, is_done);
}

/// Waits until a run and its jobs sleep: it has done everything that it could do so far.
pub(crate) fn until_at_rest(run: u32) {
    until("rest", || processes::are_at_rest(&[run]));
}

/// Returns `true` if a process is running. A zombie is not.
pub(crate) fn is_alive(pid: &str) -> bool {
    pid.parse().is_ok_and(processes::is_alive)
}

/// Returns `true` if a process is stopped.
pub(crate) fn is_stopped(pid: &str) -> bool {
    pid.parse().is_ok_and(processes::is_stopped)
}

/// Returns the process ids in a file, once it contains at least `count`.
pub(crate) fn pids(file: &Path, count: usize) -> Vec<String> {
    let mut pids = Vec::new();
    until("processes started", || {
        let text = fs::read_to_string(file).unwrap_or_default();
        pids = text.split_whitespace().map(str::to_owned).collect();
        pids.len() >= count && text.ends_with('\n')
    });
    pids
}

pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args(["-s", name, &pid.to_string()]).status();
    assert!(status.expect("kill").success());
}
