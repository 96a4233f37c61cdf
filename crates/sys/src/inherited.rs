//! Settings that a new process inherits from the thread that starts it.
//!
//! A copy of a server inherits those of the server. So the host sends its own with each request,
//! and the copy sets what has changed. What a process cannot set for itself (its user, its root,
//! its control group) is compared by the host, which replaces the server then.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

use rustix::process::getpriority_process;

use crate::affinity;
use crate::signals;

/// Settings that a process can set for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inherited {
    /// Bits that new files do not get.
    pub umask: u32,
    /// The niceness.
    pub nice: i32,
    /// The processors to run on, one bit each.
    pub affinity: Vec<u64>,
    /// Soft and hard limits on resources, by their numbers.
    pub limits: Vec<(u64, u64)>,
    /// Adjustment of the choice of a process to kill when memory runs out.
    pub oom_score: i32,
    /// It ignores SIGHUP.
    pub ignores_hangup: bool,
}

/// Settings that only a new process has, as text to compare: user, capabilities, seccomp, root and
/// control group.
///
/// Namespaces are not among them: only a thread itself changes its own, and the thread that starts
/// workers does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed(Vec<String>);

/// The number of limits that Linux has.
const LIMITS: u32 = 16;

/// The lines of `status` that only a new process has.
const FIXED: [&str; 11] = [
    "Uid:",
    "Gid:",
    "Groups:",
    "CapInh:",
    "CapPrm:",
    "CapEff:",
    "CapBnd:",
    "CapAmb:",
    "NoNewPrivs:",
    "Seccomp:",
    "Seccomp_filters:",
];

impl Inherited {
    /// Returns those that a process gets which the calling thread starts now.
    ///
    /// # Errors
    /// If `/proc` is missing.
    pub fn now() -> io::Result<(Self, Fixed)> {
        let status = read("/proc/thread-self/status")?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let parse =
            |name, radix| field(name).and_then(|it| u64::from_str_radix(it.trim(), radix).ok());
        let missing = |name| io::Error::other(format!("no {name} in /proc/thread-self/status"));
        let umask = parse("Umask:", 8).and_then(|it| u32::try_from(it).ok());
        let ignored = parse("SigIgn:", 16).ok_or_else(|| missing("SigIgn"))?;
        let oom_score = read(OOM_SCORE)?;
        let limits = (0..LIMITS).map(limit).collect::<io::Result<_>>()?;
        let inherited = Self {
            umask: umask.ok_or_else(|| missing("Umask"))?,
            nice: getpriority_process(None)?,
            affinity: affinity::current()?,
            limits,
            oom_score: oom_score.trim().parse().map_err(io::Error::other)?,
            ignores_hangup: ignored & 1 << (libc::SIGHUP - 1) != 0,
        };
        let lines = FIXED.iter().map(|name| field(name).unwrap_or_default().to_owned());
        let root = std::fs::metadata("/")?;
        let places = [
            format!("{} {}", root.dev(), root.ino()),
            read("/proc/thread-self/cgroup").unwrap_or_default(),
        ];
        Ok((inherited, Fixed(lines.chain(places).collect())))
    }

    /// Makes these the settings of this process, which has `others`.
    ///
    /// # Errors
    /// The setting that the kernel refused, and its error.
    pub fn apply(&self, others: &Self) -> Result<(), (&'static str, io::Error)> {
        for (number, (ours, theirs)) in (0..).zip(self.limits.iter().zip(&others.limits)) {
            if ours != theirs {
                set_limit(number, *ours).map_err(|error| ("limits on resources", error))?;
            }
        }
        if self.umask != others.umask {
            // SAFETY: sets a number of this process.
            unsafe { libc::umask(self.umask) };
        }
        if self.nice != others.nice {
            let set = rustix::process::setpriority_process(None, self.nice);
            set.map_err(|error| ("niceness", error.into()))?;
        }
        if self.affinity != others.affinity {
            affinity::set_current(&self.affinity).map_err(|error| ("affinity", error))?;
        }
        if self.oom_score != others.oom_score {
            let set = std::fs::write(OOM_SCORE, self.oom_score.to_string());
            set.map_err(|error| ("oom_score_adj", error))?;
        }
        if self.ignores_hangup != others.ignores_hangup {
            signals::ignore_hangup(self.ignores_hangup);
        }
        Ok(())
    }
}

/// Reads a small file of `/proc` at once.
fn read(path: &str) -> io::Result<String> {
    let mut buffer = vec![0; 8192];
    let length = std::fs::File::open(path)?.read(&mut buffer)?;
    buffer.truncate(length);
    String::from_utf8(buffer).map_err(io::Error::other)
}

const OOM_SCORE: &str = "/proc/self/oom_score_adj";

fn limit(number: u32) -> io::Result<(u64, u64)> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills the structure, which is ours.
    let read = unsafe {
        libc::syscall(libc::SYS_prlimit64, 0, number, std::ptr::null::<u8>(), &raw mut limit)
    };
    if read == -1 { Err(io::Error::last_os_error()) } else { Ok((limit.rlim_cur, limit.rlim_max)) }
}

fn set_limit(number: u32, (soft, hard): (u64, u64)) -> io::Result<()> {
    let limit = libc::rlimit64 { rlim_cur: soft, rlim_max: hard };
    // SAFETY: the kernel reads the structure, which is ours.
    let set = unsafe {
        libc::syscall(libc::SYS_prlimit64, 0, number, &raw const limit, std::ptr::null::<u8>())
    };
    if set == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork::tests::in_a_copy;

    #[test]
    fn what_was_applied_is_found_again() {
        let (ours, fixed) = Inherited::now().unwrap();
        assert!(in_a_copy(|| {
            let mut other = ours.clone();
            (other.umask, other.nice, other.oom_score) = (0o27, ours.nice + 1, ours.oom_score + 1);
            other.ignores_hangup = !ours.ignores_hangup;
            other.limits[libc::RLIMIT_CORE as usize].0 = 0;
            other.apply(&ours).is_ok()
                && Inherited::now().is_ok_and(|found| found == (other.clone(), fixed.clone()))
        }));
        assert_eq!(Inherited::now().unwrap(), (ours, fixed), "a copy has changed the original");
    }
}
