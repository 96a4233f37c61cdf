//! Errors, by operation.

use std::io;
use std::path::PathBuf;

use crate::cpu_set::CpuSet;
use crate::request::CoreRequest;

/// An error of parsing a set of cpus. Its text quotes the start of the input.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseCpuSetError {
    /// The text is not in the list format.
    #[error("`{text}` is not a list of cpus: write numbers and ascending ranges such as 0-3,8")]
    List {
        /// The input.
        text: String,
    },
    /// The text is not in the mask format.
    #[error(
        "`{text}` is not a mask of cpus: write hexadecimal words of 32 bits, separated by commas"
    )]
    Mask {
        /// The input.
        text: String,
    },
    /// A cpu number is beyond [`CpuSet::PARSE_LIMIT`].
    #[error("`{text}` has a cpu number above the limit of {}", CpuSet::PARSE_LIMIT - 1)]
    TooLarge {
        /// The input.
        text: String,
    },
}

/// An error of discovering a topology. Minor problems are [`Warning`](crate::Warning)s in the
/// topology instead.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// Neither sysfs nor `/proc/cpuinfo` lists a cpu.
    #[error("no cpu found below {root}: neither sys/devices/system/cpu nor proc/cpuinfo lists one")]
    NoCpus {
        /// The folder that was searched.
        root: PathBuf,
    },
    /// No cpu is both online and in the cpuset.
    #[error("none of the online cpus {online} is in the cpuset {cpuset}")]
    NoneUsable {
        /// The online cpus.
        online: CpuSet,
        /// The cpus that the cpuset allows.
        cpuset: CpuSet,
    },
    /// The affinity mask of this thread could not be read.
    #[error("cannot read the affinity mask of this thread")]
    Affinity(#[source] io::Error),
}

/// An error of building a pool of cores.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Requested cpus are not in the topology.
    #[error("`cpus`: {missing} are not usable; usable cpus are {usable}")]
    NotUsable {
        /// The requested cpus that are not usable.
        missing: CpuSet,
        /// The usable cpus.
        usable: CpuSet,
    },
    /// The pool would have no cpu.
    #[error(
        "the pool would be empty{}",
        if *isolated { ": all usable cpus are isolated; call `include_isolated(true)` to use them" } else { "" }
    )]
    Empty {
        /// `true` if leaving out isolated cpus leaves none.
        isolated: bool,
    },
    /// The lock file cannot be used.
    #[error("`exclusive`: cannot use the folder {folder} for locks between processes")]
    LockFile {
        /// The folder of the lock file.
        folder: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The machine could not be discovered.
    #[error("cannot discover the machine")]
    Discover(#[from] DiscoverError),
}

/// An error of leasing cores.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ReserveError {
    /// The request was for no core at all.
    #[error("0 cores requested: ask for at least one")]
    ZeroCores,
    /// The pool could not grant the request even with all its cores free.
    #[error(
        "{request} can never be granted: this pool of {size} cpus grants at most {most}; ask for fewer, {}",
        if request.is_strict() { "drop a restriction, or accept a worse placement (best effort)" } else { "or drop a restriction" }
    )]
    NeverFits {
        /// The request.
        request: CoreRequest,
        /// The largest count that the same request could be granted, in the unit that it counts.
        most: usize,
        /// Number of cpus in the pool.
        size: usize,
    },
    /// The cores are not free at this moment, or earlier requests are waiting.
    #[error("no cores are free for {request}")]
    Busy {
        /// The request.
        request: CoreRequest,
    },
    /// The lock file cannot be used.
    #[error("cannot lock the cores against other processes")]
    Lock(#[source] io::Error),
    /// The timeout elapsed first.
    #[error("timed out waiting for {request}")]
    TimedOut {
        /// The request.
        request: CoreRequest,
    },
    /// This process is a fork of the one that built the pool.
    #[error(
        "the pool of cores belongs to another process: this one is a fork of it; build a pool after the fork"
    )]
    Forked,
}

/// An error of pinning a thread or process.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum PinError {
    /// The affinity mask could not be read.
    #[error("cannot read the affinity mask of a thread")]
    GetAffinity(#[source] io::Error),
    /// The kernel refused the mask.
    #[error("cannot pin to cpus {cpus}")]
    SetAffinity {
        /// The requested cpus.
        cpus: CpuSet,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
}

brigade_sys::debug_as_text!(ParseCpuSetError, DiscoverError, BuildError, ReserveError, PinError);
