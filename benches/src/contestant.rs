//! The contestants and the commands that start them.

use std::process::Command;

use brigade_sys::process::{command, self_command};

use crate::arguments::Arguments;
use crate::folders;
use crate::load::Load;
use crate::report::Outcome;
use crate::role::ROLE;
use crate::section::Section;

/// A pool, or the bare machine, that is measured in the sections it takes part in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contestant {
    /// The machine without a pool.
    Raw,
    /// Brigade over rings in shared memory.
    Ring,
    /// Brigade over rings, built without the recording of metrics.
    Unrecorded,
    /// Brigade over ipc-channel.
    Ipc,
    /// Threads of one process.
    Rayon,
    /// The threads that tokio keeps for blocking code.
    Tokio,
    /// The crate `procspawn`.
    Procspawn,
    /// The crate `iceoryx2`, which is not a pool: samples between two processes.
    Iceoryx2,
    /// A pool from Python's standard library.
    Standard(&'static str),
    /// A Python pool that must be installed first.
    Package(&'static str),
}

/// All contestants, in the order of their turns.
pub(crate) const ALL: [Contestant; 19] = [
    Contestant::Raw,
    Contestant::Ring,
    Contestant::Unrecorded,
    Contestant::Ipc,
    Contestant::Rayon,
    Contestant::Tokio,
    Contestant::Procspawn,
    Contestant::Iceoryx2,
    Contestant::Standard("concurrent.futures"),
    Contestant::Standard("multiprocessing"),
    Contestant::Standard("forkserver"),
    Contestant::Package("loky"),
    Contestant::Package("pebble"),
    Contestant::Package("billiard"),
    Contestant::Package("mpire"),
    Contestant::Package("joblib"),
    Contestant::Package("celery"),
    Contestant::Package("dask"),
    Contestant::Package("ray"),
];

/// The packages that are queues for many machines, and no pools.
const QUEUES: [&str; 3] = ["celery", "dask", "ray"];

/// The pools that are measured for fresh processes only.
const FRESH: [&str; 2] = ["forkserver", "billiard"];

/// The sections about large results.
const LARGE_RESULTS: [Section; 2] = [Section::Handover, Section::Loader];

/// Keeps large freed blocks in each process, as the guide advises for large values.
const KEEPS_BLOCKS: &str =
    "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=2147483648:glibc.malloc.arena_max=1";

const NOT_BUILT: &str = "it was not built";

impl Contestant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Ring => "ring",
            Self::Unrecorded => "unrecorded",
            Self::Ipc => "ipc",
            Self::Rayon => "rayon",
            Self::Tokio => "tokio",
            Self::Procspawn => "procspawn",
            Self::Iceoryx2 => "iceoryx2",
            Self::Standard(name) | Self::Package(name) => name,
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|contestant| contestant.name() == name)
    }

    /// Returns the version of a contestant that is part of this executable; empty for the others,
    /// which report their versions themselves.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Ring | Self::Unrecorded | Self::Ipc => env!("CARGO_PKG_VERSION"),
            _ => "",
        }
    }

    pub(crate) fn takes_part(self, section: Section) -> bool {
        match self {
            Self::Ring => true,
            _ if section == Section::ClusterIdle => false,
            _ if section == Section::Cluster => match self {
                Self::Raw => true,
                Self::Package(name) => QUEUES.contains(&name),
                _ => false,
            },
            Self::Standard(name) | Self::Package(name) if FRESH.contains(&name) => {
                section == Section::Fresh
            }
            _ if section == Section::Fresh => matches!(
                self,
                Self::Raw
                    | Self::Ipc
                    | Self::Procspawn
                    | Self::Standard("multiprocessing")
                    | Self::Package("pebble")
            ),
            Self::Package(name) if QUEUES.contains(&name) => false,
            Self::Unrecorded => section == Section::Throughput,
            // Over ipc, a buffer is copied into messages as any other bytes are.
            Self::Ipc => !matches!(section, Section::Handover | Section::Batches | Section::Flow),
            Self::Rayon => matches!(
                section,
                Section::Work | Section::Loader | Section::Grain | Section::Callers
            ),
            Self::Tokio => matches!(section, Section::Async | Section::Service),
            Self::Raw => matches!(
                section,
                Section::Latency
                    | Section::Grain
                    | Section::Callers
                    | Section::Payload
                    | Section::Start
                    | Section::Crash
            ),
            Self::Procspawn if section == Section::Async => true,
            Self::Iceoryx2 => section == Section::Handover,
            Self::Standard("concurrent.futures") if section == Section::Handover => true,
            Self::Standard("multiprocessing") if LARGE_RESULTS.contains(&section) => true,
            // They are no faster with short tasks than the pools of the standard library.
            Self::Package(_) if matches!(section, Section::Grain | Section::Callers) => false,
            // The peers make no promises about these sections. `Balance` and `Serial` measure the
            // schedule of a list, not the overhead of a task.
            _ => !matches!(
                section,
                Section::Idle
                    | Section::Sandbox
                    | Section::Balance
                    | Section::Fallout
                    | Section::Backlog
                    | Section::Crowd
                    | Section::Pressure
                    | Section::Serial
                    | Section::Handover
                    | Section::Batches
                    | Section::Flow
                    | Section::Loader
                    | Section::Async
                    | Section::Service
            ),
        }
    }

    /// Returns the command that measures one section once, or the reason why it cannot be measured.
    pub(crate) fn command(
        self,
        section: Section,
        load: &Load,
        arguments: &Arguments,
    ) -> Outcome<Command> {
        let needs_asking =
            matches!(self, Self::Unrecorded | Self::Procspawn | Self::Iceoryx2 | Self::Package(_));
        if needs_asking && !arguments.peers {
            return Err("not requested: run with --peers".into());
        }
        let load = serde_json::to_string(load)?;
        let mut started = match self {
            Self::Raw | Self::Ring | Self::Ipc | Self::Rayon | Self::Tokio => {
                let mut started = self_command();
                started.args([ROLE, "contestant", self.name()]);
                started
            }
            Self::Unrecorded => {
                let mut started = command(arguments.unrecorded.as_deref().ok_or(NOT_BUILT)?);
                started.args([ROLE, "contestant", Self::Ring.name()]);
                started
            }
            Self::Procspawn => command(arguments.procspawn.as_deref().ok_or(NOT_BUILT)?),
            Self::Iceoryx2 => command(arguments.iceoryx2.as_deref().ok_or(NOT_BUILT)?),
            Self::Standard(name) | Self::Package(name) => {
                let mut started = command(arguments.python());
                started.arg(folders::peers().join("measure.py")).arg(name);
                started
            }
        };
        if section == Section::Payload {
            started.env("GLIBC_TUNABLES", KEEPS_BLOCKS);
        }
        started.arg(section.name()).arg(load);
        Ok(started)
    }
}
