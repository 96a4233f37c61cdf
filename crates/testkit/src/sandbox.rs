//! A sandbox for workers: an initializer that closes nearly everything that the kernel can close.

use std::collections::BTreeMap;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
    Scope, path_beneath_rules,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde::{Deserialize, Serialize};

/// The files and system calls that a worker closes in its initializer, [`enter`](Self::enter).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Sandbox {
    files: bool,
    /// Folders that stay open if files are closed.
    kept: Vec<PathBuf>,
    calls: bool,
    /// System calls that are allowed in addition to [`CALLS`].
    more_calls: Vec<i64>,
}

/// The system calls that a worker makes after its initializer, with its allocator. Any other one
/// ends the process if [`Sandbox::calls`] are closed. `SECURITY.md` has the same list.
pub const CALLS: &[i64] = &[
    // Rings and doorbells, the control socket, the start of an arena of another worker.
    libc::SYS_futex,
    libc::SYS_read,
    libc::SYS_write,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_close,
    // Memory: the allocator, the arenas, the stacks of threads.
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    // The limit of the resident size.
    libc::SYS_pread64,
    // Panics, and handlers of signals.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    // The end.
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_sched_yield,
    libc::SYS_getrandom,
];

impl Sandbox {
    /// Closes all files, TCP, and signals and sockets of other processes, by Landlock.
    #[must_use]
    pub fn files(mut self) -> Self {
        self.files = true;
        self
    }

    /// Keeps a folder open.
    #[must_use]
    pub fn keep(mut self, folder: PathBuf) -> Self {
        self.kept.push(folder);
        self
    }

    /// Closes all system calls but [`CALLS`], by a seccomp filter that ends the process.
    #[must_use]
    pub fn calls(mut self) -> Self {
        self.calls = true;
        self
    }

    /// Keeps system calls open.
    #[must_use]
    pub fn allow(mut self, calls: impl IntoIterator<Item = i64>) -> Self {
        self.more_calls.extend(calls);
        self
    }

    /// Applies it to this process: an initializer.
    ///
    /// # Errors
    /// If the kernel lacks Landlock or seccomp filters.
    pub fn enter(self) -> Result<(), String> {
        if self.files {
            self.close_files().map_err(|error| format!("Landlock: {error}"))?;
        }
        if self.calls {
            self.close_calls().map_err(|error| format!("seccomp: {error}"))?;
        }
        Ok(())
    }

    fn close_files(&self) -> Result<(), String> {
        let abi = ABI::V6;
        let enforced = Ruleset::default()
            .handle_access(AccessFs::from_all(abi))
            .and_then(|rules| rules.handle_access(AccessNet::from_all(abi)))
            .and_then(|rules| rules.scope(Scope::from_all(abi)))
            .and_then(Ruleset::create)
            .and_then(|rules| {
                rules.add_rules(path_beneath_rules(&self.kept, AccessFs::from_all(abi)))
            })
            .and_then(landlock::RulesetCreated::restrict_self)
            .map_err(|error| error.to_string())?;
        match enforced.ruleset {
            RulesetStatus::NotEnforced => Err("this kernel has none, which the test needs".into()),
            _ => Ok(()),
        }
    }

    fn close_calls(&self) -> Result<(), String> {
        let calls = CALLS.iter().chain(&self.more_calls);
        let rules: BTreeMap<_, _> = calls.map(|call| (*call, Vec::new())).collect();
        let (refused, allowed) = (SeccompAction::KillProcess, SeccompAction::Allow);
        let arch = std::env::consts::ARCH.try_into();
        let arch = arch.map_err(|error| format!("{error}"))?;
        let filter = SeccompFilter::new(rules, refused, allowed, arch);
        let program: Result<BpfProgram, _> = filter.and_then(TryInto::try_into);
        let program = program.map_err(|error| error.to_string())?;
        seccompiler::apply_filter(&program).map_err(|error| error.to_string())
    }
}
