//! Settings that a new process inherits from the thread that starts it.
//!
//! A copy of a server inherits those of the server. So the host sends its own with each request,
//! and the copy sets what has changed. What a process cannot set for itself (its user, its root,
//! its control group) is compared by the host, which replaces the server then.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::fs::Mode;
use rustix::process::getpriority_process;

use crate::affinity;
use crate::resource_limit::{LIMITS, limit};
use crate::signals;

/// Settings that a process can set for itself.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
pub struct Fixed(String);

/// The lines of `status` that only a new process has.
const FIXED: [&str; 11] = [
    "Uid",
    "Gid",
    "Groups",
    "CapInh",
    "CapPrm",
    "CapEff",
    "CapBnd",
    "CapAmb",
    "NoNewPrivs",
    "Seccomp",
    "Seccomp_filters",
];

/// Says what a process inherits. It keeps the files of `/proc` open, which saves looking for them
/// each time.
#[derive(Debug, Default)]
pub struct Source(Option<Files>);

/// Files about the thread that has opened them.
#[derive(Debug)]
struct Files {
    status: File,
    oom_score: File,
    control_group: Option<File>,
    /// The text of the last file that was read.
    text: Vec<u8>,
}

impl Source {
    /// Returns the settings that a process gets which the calling thread starts now. Call it on one
    /// thread only.
    ///
    /// # Errors
    /// If `/proc` is missing.
    pub fn now(&mut self) -> io::Result<(Inherited, Fixed)> {
        // The program may have closed descriptors that it does not know.
        if let Some(found) = self.0.as_mut().and_then(|files| files.read().ok()) {
            return Ok(found);
        }
        if let Some(Files { status, oom_score, control_group, .. }) = self.0.take() {
            // Their numbers may be those of other files by now.
            std::mem::forget((status, oom_score, control_group));
        }
        self.0.insert(Files::open()?).read()
    }
}

impl Files {
    fn open() -> io::Result<Self> {
        Ok(Self {
            status: File::open("/proc/thread-self/status")?,
            oom_score: File::open(OOM_SCORE)?,
            control_group: File::open("/proc/thread-self/cgroup").ok(),
            text: Vec::new(),
        })
    }

    fn read(&mut self) -> io::Result<(Inherited, Fixed)> {
        let mut fixed = String::with_capacity(1024);
        let (mut umask, mut ignored) = (None, None);
        for line in read(&self.status, &mut self.text)?.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            match name {
                "Umask" => umask = u32::from_str_radix(value.trim(), 8).ok(),
                "SigIgn" => ignored = u64::from_str_radix(value.trim(), 16).ok(),
                _ if FIXED.contains(&name) => fixed.push_str(value),
                _ => {}
            }
        }
        let missing = |name| io::Error::other(format!("no {name} in /proc/thread-self/status"));
        let root = std::fs::metadata("/")?;
        let root = [root.dev(), root.ino()].map(|number| format!(" {number}"));
        fixed.extend(root);
        if let Some(file) = &self.control_group {
            fixed.push_str(read(file, &mut self.text)?);
        }
        let oom_score = read(&self.oom_score, &mut self.text)?;
        let inherited = Inherited {
            umask: umask.ok_or_else(|| missing("Umask"))?,
            nice: getpriority_process(None)?,
            affinity: affinity::current()?,
            limits: (0..LIMITS).map(|it| limit(0, it, None)).collect::<io::Result<_>>()?,
            oom_score: oom_score.trim().parse().map_err(io::Error::other)?,
            ignores_hangup: ignored.ok_or_else(|| missing("SigIgn"))? & 1 << (libc::SIGHUP - 1)
                != 0,
        };
        Ok((inherited, Fixed(fixed)))
    }
}

/// Reads a small file of `/proc`, which has its present contents at each reading.
fn read<'a>(file: &File, into: &'a mut Vec<u8>) -> io::Result<&'a str> {
    into.resize(8192, 0);
    let length = file.read_at(into, 0)?;
    std::str::from_utf8(&into[..length]).map_err(io::Error::other)
}

impl Inherited {
    /// Returns those that a process gets which the calling thread starts now.
    ///
    /// # Errors
    /// If `/proc` is missing.
    pub fn now() -> io::Result<(Self, Fixed)> {
        Source::default().now()
    }

    /// Makes these the settings of this process, which has `others`.
    ///
    /// # Errors
    /// The setting that the kernel refused, and its error.
    pub fn apply(&self, others: &Self) -> Result<(), (&'static str, io::Error)> {
        for (number, (ours, theirs)) in (0..).zip(self.limits.iter().zip(&others.limits)) {
            if ours != theirs {
                limit(0, number, Some(*ours)).map_err(|error| ("limits on resources", error))?;
            }
        }
        rustix::process::umask(Mode::from_raw_mode(self.umask));
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

const OOM_SCORE: &str = "/proc/self/oom_score_adj";

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::fork::tests::in_a_copy;

    #[test]
    fn files_that_were_closed_are_opened_again() {
        assert!(in_a_copy(|| {
            let mut source = Source::default();
            let first = source.now().unwrap();
            let files = source.0.as_ref().unwrap();
            let null = File::open("/dev/null").unwrap();
            for file in [&files.status, &files.oom_score] {
                // SAFETY: the number gets another file, which the source must notice.
                unsafe { libc::dup2(null.as_raw_fd(), file.as_raw_fd()) };
            }
            source.now().is_ok_and(|found| found == first)
        }));
    }

    #[test]
    fn what_was_applied_is_found_again() {
        let (ours, fixed) = Inherited::now().unwrap();
        assert!(in_a_copy(|| {
            let mut other = ours.clone();
            (other.umask, other.nice, other.oom_score) =
                (0o27, (ours.nice + 1).min(19), ours.oom_score + 1);
            other.ignores_hangup = !ours.ignores_hangup;
            other.limits[libc::RLIMIT_CORE as usize].0 = 0;
            other.apply(&ours).is_ok()
                && Inherited::now().is_ok_and(|found| found == (other.clone(), fixed.clone()))
        }));
        assert_eq!(Inherited::now().unwrap(), (ours, fixed), "a copy has changed the original");
    }
}
