//! Adverse surroundings of a program that a pool must endure.
//!
//! They concern a whole process, so each is played in a child process: the same program with
//! `--surroundings NAME`, in its own process group. The parent provides everything that comes from
//! outside (a stderr that nobody reads, stops by the terminal) and bounds the run;
//! [`inside`](super::inside) does everything that the process does to itself.

use std::fmt;
use std::io::{PipeReader, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use brigade_testkit::processes::{self, Signal};
use brigade_testkit::{Random, pause};
use rustix::process::{Pid, kill_process_group};

use super::Settings;

/// The surroundings of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Surroundings {
    /// Standard error is a full pipe that nobody reads.
    FullStderr,
    /// Standard error is read slowly.
    SlowStderr,
    /// Standard error is closed.
    ClosedStderr,
    /// The `tracing` subscriber panics now and then.
    PanickingSubscriber,
    /// The `tracing` subscriber queries the pool.
    CuriousSubscriber,
    /// The `tracing` subscriber is slow.
    SlowSubscriber,
    /// Futures are awaited with wakers that block, and that use the pool.
    BlockingWakers,
    /// The limit of open files is lowered for a while.
    FewDescriptors,
    /// The process has no privileges.
    NoPrivileges,
    /// Workers drop their privileges when they start, and the host keeps its own.
    DroppedPrivileges,
    /// The terminal stops and continues the process group, again and again.
    StopAndContinue,
    /// The process forks, and the copies use and drop the pool.
    Forks,
    /// Tasks write over the memory that their worker shares with the host.
    Scribbler,
}

/// Time that a child may take beyond its rounds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time between two looks at a child.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Marks the processes started by a child.
const COOKIE: &str = "BRIGADE_STRESS_COOKIE";

impl Surroundings {
    pub(super) const ALL: [Self; 13] = [
        Self::FullStderr,
        Self::SlowStderr,
        Self::ClosedStderr,
        Self::PanickingSubscriber,
        Self::CuriousSubscriber,
        Self::SlowSubscriber,
        Self::BlockingWakers,
        Self::FewDescriptors,
        Self::NoPrivileges,
        Self::DroppedPrivileges,
        Self::StopAndContinue,
        Self::Forks,
        Self::Scribbler,
    ];

    fn concern_stderr(self) -> bool {
        matches!(self, Self::FullStderr | Self::SlowStderr | Self::ClosedStderr)
    }

    fn name(self) -> &'static str {
        match self {
            Self::FullStderr => "full-stderr",
            Self::SlowStderr => "slow-stderr",
            Self::ClosedStderr => "closed-stderr",
            Self::PanickingSubscriber => "panicking-subscriber",
            Self::CuriousSubscriber => "curious-subscriber",
            Self::SlowSubscriber => "slow-subscriber",
            Self::BlockingWakers => "blocking-wakers",
            Self::FewDescriptors => "few-descriptors",
            Self::NoPrivileges => "no-privileges",
            Self::DroppedPrivileges => "dropped-privileges",
            Self::StopAndContinue => "stop-and-continue",
            Self::Forks => "forks",
            Self::Scribbler => "scribbler",
        }
    }
}

impl fmt::Display for Surroundings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Surroundings {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|surroundings| surroundings.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there are no surroundings `{name}`: use one of {names}")
        })
    }
}

/// Plays rounds in a child process with these surroundings. Returns its output.
///
/// # Errors
/// Returns the line that repeats the run, and the output of the child.
pub(super) fn play(settings: &Settings, surroundings: Surroundings) -> Result<String, String> {
    let settings = Settings { surroundings: Some(surroundings), ..settings.clone() };
    let mut random = Random::new(settings.seed);
    let cookie = Random::fresh_seed().to_string();
    let mut output = tempfile::tempfile().map_err(|error| error.to_string())?;
    let folder =
        tempfile::Builder::new().prefix("bs").tempdir().map_err(|error| error.to_string())?;
    let (mut command, reader) = command(&settings, surroundings)?;
    let file = || output.try_clone().map_err(|error| error.to_string());
    if !surroundings.concern_stderr() {
        command.stderr(file()?);
    }
    command.stdout(file()?).env(COOKIE, &cookie).env("TMPDIR", folder.path()).process_group(0);
    if surroundings == Surroundings::NoPrivileges {
        std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY))
            .map_err(|error| format!("cannot give away a folder: {error}"))?;
    }
    let mut child = command.spawn().map_err(|error| format!("cannot start: {error}"))?;
    drop(command);
    let status = thread::scope(|scope| {
        if surroundings == Surroundings::SlowStderr {
            scope.spawn(|| read_slowly(reader.as_ref()));
        }
        let status = wait(&mut child, &settings, surroundings, &mut random);
        // The child may have been killed while its workers go on printing.
        kill_all(&cookie, status.is_ok())?;
        status
    });
    let mut printed = String::new();
    let read = output.rewind().and_then(|()| output.read_to_string(&mut printed));
    read.map_err(|error| format!("cannot read what a child printed: {error}"))?;
    match status {
        Ok(()) => Ok(printed),
        Err(problem) => Err(format!(
            "{problem}\nin a child process that printed:\n{printed}\nrepeat with: {settings}"
        )),
    }
}

/// The uid of the user without privileges.
const NOBODY: u32 = 65_534;

/// Returns the command of the child, and the end of its standard error that must be kept open while
/// it lives.
fn command(
    settings: &Settings,
    surroundings: Surroundings,
) -> Result<(Command, Option<PipeReader>), String> {
    let failed = |error: std::io::Error| format!("cannot prepare a child: {error}");
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = match surroundings {
        Surroundings::ClosedStderr => {
            let mut shell = Command::new("sh");
            shell.args(["-c", "exec \"$0\" \"$@\" 2>&-"]).arg(program);
            shell
        }
        _ => Command::new(program),
    };
    command.args(settings.arguments()).stdin(Stdio::null()).stderr(Stdio::null());
    let mut kept = None;
    match surroundings {
        Surroundings::FullStderr | Surroundings::SlowStderr => {
            let (reader, mut writer) = std::io::pipe().map_err(failed)?;
            fill(&mut writer).map_err(failed)?;
            command.stderr(writer);
            kept = Some(reader);
        }
        Surroundings::NoPrivileges if rustix::process::getuid().is_root() => {
            command.uid(NOBODY).gid(NOBODY);
        }
        _ => {}
    }
    Ok((command, kept))
}

/// Writes until the pipe is full.
fn fill(writer: &mut std::io::PipeWriter) -> std::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&*writer)?;
    rustix::fs::fcntl_setfl(&*writer, flags | rustix::fs::OFlags::NONBLOCK)?;
    while writer.write(&[b'.'; 4096]).is_ok() {}
    Ok(rustix::fs::fcntl_setfl(&*writer, flags)?)
}

fn read_slowly(reader: Option<&PipeReader>) {
    let Some(mut reader) = reader else { return };
    let mut buffer = [0; 512];
    while reader.read(&mut buffer).is_ok_and(|count| count > 0) {
        pause(LOOK_AGAIN);
    }
}

/// Waits for the end of the child, and disturbs it meanwhile.
fn wait(
    child: &mut Child,
    settings: &Settings,
    surroundings: Surroundings,
    random: &mut Random,
) -> Result<(), String> {
    let begin = Instant::now();
    let bound = settings.time + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("{surroundings}: {status}")),
            Err(error) => return Err(format!("{surroundings}: {error}")),
        }
        if begin.elapsed() > bound {
            let threads = stacks(child.id());
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{surroundings}: did not end within {bound:?}: {threads}"));
        }
        // In the last third the child is left alone: it must recover.
        if surroundings == Surroundings::StopAndContinue && begin.elapsed() < settings.time {
            let group = |signal| {
                if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    // A child that has just ended is fine.
                    let _ = kill_process_group(group, signal);
                }
            };
            group(Signal::TSTP);
            pause(random.below(Duration::from_millis(20)));
            group(Signal::CONT);
            pause(random.below(Duration::from_millis(40)));
        }
        pause(LOOK_AGAIN);
    }
}

/// Returns the kernel stack of each thread of a process.
fn stacks(pid: u32) -> String {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lines = tasks.map(|task| {
        let read = |name| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        format!("{} in {}", read("comm").trim(), read("wchan"))
    });
    lines.collect::<Vec<_>>().join(", ")
}

/// Kills every process that comes from a child. Returns an error if any was left although the child
/// ended well.
fn kill_all(cookie: &str, ended_well: bool) -> Result<(), String> {
    let begin = Instant::now();
    let mut left = processes::with_variable(COOKIE, cookie);
    while ended_well && !left.is_empty() && begin.elapsed() < Duration::from_secs(5) {
        pause(LOOK_AGAIN);
        left = processes::with_variable(COOKIE, cookie);
    }
    for pid in &left {
        processes::hit(*pid, Signal::KILL);
    }
    if ended_well && !left.is_empty() {
        return Err(format!("the processes {left:?} outlived their host"));
    }
    Ok(())
}
