//! What can go wrong, by operation.

use std::io;
use std::path::PathBuf;

use crate::cpu_set::CpuSet;
use crate::request::CoreRequest;

/// Why a text is no set of cpus. The text quotes the beginning of what was read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseCpuSetError {
    /// Not in the list format.
    #[error("`{text}` is no list of cpus: write numbers and ascending ranges such as 0-3,8")]
    List {
        /// What was read.
        text: String,
    },
    /// Not in the mask format.
    #[error("`{text}` is no mask of cpus: write hexadecimal words of 32 bits, separated by commas")]
    Mask {
        /// What was read.
        text: String,
    },
    /// A number that no machine has.
    #[error("`{text}` names a cpu beyond {}", CpuSet::PARSE_LIMIT - 1)]
    TooLarge {
        /// What was read.
        text: String,
    },
}

/// Why there is no topology at all; lesser trouble is a [`Warning`](crate::Warning) in the topology.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// Neither sysfs nor `/proc/cpuinfo` name a cpu.
    #[error("no cpu found below {root}: neither sys/devices/system/cpu nor proc/cpuinfo name one")]
    NoCpus {
        /// Where was looked.
        root: PathBuf,
    },
    /// The cpuset and the online cpus have none in common.
    #[error("none of the online cpus {online} is in the cpuset {cpuset}")]
    NoneUsable {
        /// What is online.
        online: CpuSet,
        /// What the cpuset allows.
        cpuset: CpuSet,
    },
    /// The affinity mask of this thread.
    #[error("cannot read on which cpus this thread may run")]
    Affinity(#[source] io::Error),
}

/// Why a pool of cores cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Cpus were asked for that the topology does not have.
    #[error("`cpus`: {missing} cannot be used here; usable are {usable}")]
    NotUsable {
        /// Asked for, and not there.
        missing: CpuSet,
        /// What is there.
        usable: CpuSet,
    },
    /// Nothing remains.
    #[error(
        "the pool would be empty{}",
        if *isolated { ": all usable cpus are isolated; say `include_isolated(true)` to take them" } else { "" }
    )]
    Empty {
        /// Whether that is because isolated cpus are left out.
        isolated: bool,
    },
    /// The locks between processes.
    #[error("`exclusive`: cannot use the folder {folder} for locks between processes")]
    LockFile {
        /// Where the file should be.
        folder: PathBuf,
        /// What is wrong with it.
        #[source]
        source: io::Error,
    },
    /// The machine could not be discovered.
    #[error("cannot discover the machine")]
    Discover(#[from] DiscoverError),
}

/// Why no lease was given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReserveError {
    /// A lease has at least one core.
    #[error("0 cores requested: ask for at least one")]
    ZeroCores,
    /// Not even the pool with all its cores free could satisfy the request.
    #[error(
        "{request} can never be had from this pool: {most} of its {size} cpus at most; ask for less, {}",
        if request.is_strict() { "drop a restriction, or say `best_effort()`" } else { "or drop a restriction" }
    )]
    NeverFits {
        /// What was asked for.
        request: CoreRequest,
        /// The largest count that the same request could ever have, in what it counts.
        most: usize,
        /// How many cpus the pool has.
        size: usize,
    },
    /// Not at this moment, or others were here before.
    #[error("no cores free for {request} now")]
    Busy {
        /// What was asked for.
        request: CoreRequest,
    },
    /// The locks between processes cannot be used.
    #[error("cannot lock the cores against other processes")]
    Lock(#[source] io::Error),
    /// The time was over first.
    #[error("no cores were free for {request} in time")]
    TimedOut {
        /// What was asked for.
        request: CoreRequest,
    },
    /// This process is a fork of the one that built the pool.
    #[error(
        "the pool of cores belongs to another process: this one is a fork of it; build a pool after the fork"
    )]
    Forked,
}

/// Why a thread or process is not pinned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PinError {
    /// The mask could not be read.
    #[error("cannot read on which cpus a thread may run")]
    GetAffinity(#[source] io::Error),
    /// The kernel refused.
    #[error("cannot pin to cpus {cpus}")]
    SetAffinity {
        /// Where it should run.
        cpus: CpuSet,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}
