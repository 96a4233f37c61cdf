//! The options of sandboxes and limits.

use std::path::PathBuf;
use std::time::Duration;

use brigade::{Limits, Sandbox};
use clap::{Args, ValueHint};

use super::values::{parse_number, parse_seconds, parse_size};
use crate::confine::SandboxLevel;
use crate::each::Each;

/// The options of sandboxes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Sandbox")]
pub(crate) struct SandboxOptions {
    /// Run each job in a sandbox, which the kernel enforces. The programs of the system can be
    /// executed in all of them; `brigade sandbox` shows what this machine can do
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub(crate) sandbox: Option<SandboxLevel>,

    /// Let jobs in the sandbox read a file, or a directory and everything below; may be repeated,
    /// and contain replacement strings of `brigade run`, as may the paths of the next two
    #[arg(long, value_name = "PATH", requires = "sandbox", value_hint = ValueHint::AnyPath)]
    pub(crate) read: Vec<PathBuf>,

    /// Let jobs in the sandbox read and change a file or directory; may be repeated
    #[arg(long, value_name = "PATH", requires = "sandbox", value_hint = ValueHint::AnyPath)]
    pub(crate) write: Vec<PathBuf>,

    /// Let jobs in the sandbox execute a program, or those in a directory; may be repeated
    #[arg(long, value_name = "PATH", requires = "sandbox", value_hint = ValueHint::AnyPath)]
    pub(crate) execute: Vec<PathBuf>,

    /// Let jobs in the sandbox connect to a TCP port; may be repeated
    #[arg(long, value_name = "PORT", requires = "sandbox", value_parser = parse_number::<u16>)]
    pub(crate) connect: Vec<u16>,

    /// Let jobs in the sandbox make a system call that it forbids, such as chmod; may be repeated
    #[arg(long, value_name = "NAME", requires = "sandbox")]
    pub(crate) allow_call: Vec<String>,

    /// Hide all other files from jobs in a strict sandbox, names and sizes too, and give them a
    /// network and System V IPC of their own, by namespaces of the kernel
    #[arg(long, requires = "sandbox")]
    pub(crate) isolate: bool,

    /// Go on without the parts of the sandbox that this machine cannot enforce
    #[arg(long, requires = "sandbox")]
    pub(crate) best_effort: bool,
}

/// The options of limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitOptions {
    /// End a job that takes more memory than this, such as 512M or 2G
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,

    /// End a process of a job that computes longer than this, such as 5s or 2m; time in which it
    /// waits does not count
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub(crate) cpu_time: Option<Duration>,

    /// End a job that writes a file larger than this
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) file_size: Option<u64>,

    /// Let a job have no more processes and threads than this
    #[arg(long, value_name = "N", value_parser = parse_number::<u64>)]
    pub(crate) processes: Option<u64>,
}

impl SandboxOptions {
    /// Returns `true` if the paths may have replacement strings, so that each job has its own.
    pub(crate) fn differs(&self) -> bool {
        let mut paths = [&self.read, &self.write, &self.execute].into_iter().flatten();
        paths.any(|path| path.as_os_str().as_encoded_bytes().contains(&b'{'))
    }

    /// Returns the sandbox, if there is one.
    pub(crate) fn made(&self) -> Option<Sandbox> {
        let sandbox = match self.sandbox? {
            SandboxLevel::NoNetwork => Sandbox::no_network(),
            SandboxLevel::ReadOnly => Sandbox::read_only(),
            SandboxLevel::Strict => Sandbox::strict(),
        };
        let sandbox = sandbox
            .each(&self.read, Sandbox::read)
            .each(&self.write, Sandbox::write)
            .each(&self.execute, Sandbox::execute)
            .each(self.connect.iter().copied(), Sandbox::connect)
            .each(&self.allow_call, Sandbox::allow_call);
        let sandbox = if self.isolate { sandbox.isolate() } else { sandbox };
        Some(if self.best_effort { sandbox.best_effort() } else { sandbox })
    }

    /// Returns the options again as words, for a process of this program.
    pub(crate) fn words(&self) -> Vec<std::ffi::OsString> {
        use clap::ValueEnum as _;
        let mut words = Vec::new();
        if let Some(level) = self.sandbox.and_then(|level| level.to_possible_value()) {
            words.extend(["--sandbox".into(), level.get_name().into()]);
        }
        for (option, paths) in
            [("--read", &self.read), ("--write", &self.write), ("--execute", &self.execute)]
        {
            words.extend(paths.iter().flat_map(|path| [option.into(), path.into()]));
        }
        let ports = self.connect.iter();
        words.extend(ports.flat_map(|port| ["--connect".into(), port.to_string().into()]));
        let calls = self.allow_call.iter();
        words.extend(calls.flat_map(|name| ["--allow-call".into(), name.into()]));
        words.extend(self.isolate.then(|| "--isolate".into()));
        words.extend(self.best_effort.then(|| "--best-effort".into()));
        words
    }
}

impl LimitOptions {
    /// Returns the limits.
    pub(crate) fn made(self) -> Limits {
        Limits::new()
            .each(self.memory, Limits::memory)
            .each(self.cpu_time, Limits::cpu_time)
            .each(self.file_size, Limits::file_size)
            .each(self.processes, Limits::processes)
    }
}
