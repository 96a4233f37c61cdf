//! Runs a program of `src/bin` with its own temporary folder and a cookie.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use brigade_testkit::{BOUND, Random, Watchdog, processes, wait_until};
use tempfile::TempDir;

/// The variable that identifies the program and every process that it starts.
const COOKIE: &str = "BRIGADE_TEST_COOKIE";

/// A program with its environment, and means to observe it.
#[derive(Debug)]
pub struct Helper {
    command: Command,
    cookie: String,
    folder: TempDir,
    shared_memory: BTreeSet<OsString>,
}

impl Helper {
    /// Prepares a program. In a test, its path is `env!("CARGO_BIN_EXE_<name>")`.
    ///
    /// # Panics
    /// Panics if no temporary folder can be created.
    pub fn new(program: &str) -> Self {
        // A short name: the whole path of a socket in it has at most about a hundred bytes.
        let folder = tempfile::Builder::new().prefix("bt").tempdir().expect("a temporary folder");
        let cookie = Random::fresh_seed().to_string();
        let mut command = Command::new(program);
        command.env(COOKIE, &cookie).env("TMPDIR", folder.path()).stdin(Stdio::null());
        // Large blocks go back to the system when they are freed, so that the resident memory shows
        // what is in use. By default the first one that is freed lets the allocator keep them.
        command.env("MALLOC_MMAP_THRESHOLD_", "131072");
        // The stack of a panic takes seconds on a busy machine, because the program is not
        // optimized and has much to read.
        command.env("RUST_BACKTRACE", "0");
        // An entry may be any text. Workers get it like all others.
        command.env("=x", "1");
        Self { command, cookie, folder, shared_memory: entries(Path::new("/dev/shm")) }
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.command.arg(argument);
        self
    }

    /// Makes the program lead its own process group, as a shell does with a job.
    #[must_use]
    pub fn leading_a_group(mut self) -> Self {
        self.command.process_group(0);
        self
    }

    /// Starts the program and discards its standard output and error.
    ///
    /// # Panics
    /// Panics if it cannot be started.
    pub fn start(&mut self) -> Child {
        self.command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a helper program")
    }

    /// Runs the program to its end and collects its output and that of its workers.
    ///
    /// # Panics
    /// Panics if it cannot be started. If it hangs, the watchdog ends everything.
    pub fn output(&mut self) -> Output {
        let _watchdog = Watchdog::new(format!("the end of {:?}", self.command), 2 * BOUND);
        self.command.output().expect("a helper program")
    }

    /// Runs the program to its end, and reads its output only then.
    ///
    /// # Panics
    /// Panics if it cannot be started. If it hangs, the watchdog ends everything.
    pub fn output_unread(&mut self) -> (String, String) {
        let _watchdog = Watchdog::new(format!("the end of {:?}", self.command), 2 * BOUND);
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("a helper program");
        child.wait().expect("its end");
        // Leftover processes may hold the pipes open.
        let text = |pipe: Option<&mut dyn Read>| {
            let mut bytes = vec![0; 1 << 16];
            let length = pipe.map_or(0, |pipe| pipe.read(&mut bytes).unwrap_or(0));
            String::from_utf8_lossy(&bytes[..length]).into_owned()
        };
        let stdout = text(child.stdout.as_mut().map(|pipe| pipe as _));
        (stdout, text(child.stderr.as_mut().map(|pipe| pipe as _)))
    }

    /// Returns the living processes started by the program, without the program itself.
    pub fn processes(&self, program: u32) -> Vec<u32> {
        let mut found = processes::with_variable(COOKIE, &self.cookie);
        found.retain(|pid| *pid != program);
        found
    }

    /// Returns those processes without the fork server.
    pub fn workers(&self, program: u32) -> Vec<u32> {
        let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let mut found = self.processes(program);
        found.retain(|pid| name(*pid).trim_end() != "brigade-fork");
        found
    }

    /// Returns the files that the program left in its temporary folder and in shared memory.
    pub fn left_behind(&self) -> Vec<OsString> {
        let mut left: Vec<OsString> = entries(self.folder.path()).into_iter().collect();
        left.extend(entries(Path::new("/dev/shm")).difference(&self.shared_memory).cloned());
        left
    }
}

impl Drop for Helper {
    /// Kills every process that a failed test left alive.
    fn drop(&mut self) {
        for pid in processes::with_variable(COOKIE, &self.cookie) {
            processes::hit(pid, processes::Signal::KILL);
        }
        if !std::thread::panicking() {
            wait_until("the end of a helper's processes", BOUND, || {
                processes::with_variable(COOKIE, &self.cookie).is_empty()
            });
        }
    }
}

fn entries(folder: &Path) -> BTreeSet<OsString> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().into_os_string())
        .collect()
}
