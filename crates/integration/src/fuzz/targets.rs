//! Targets of scribbles: shared memory, descriptors, and the files behind them.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use brigade_testkit::Random;
use brigade_testkit_sys::misdeeds;
use rustix::fs::{OFlags, fcntl_setfl, ftruncate};
use rustix::net::{Shutdown, shutdown};
use serde::{Deserialize, Serialize};

use super::{Wire, memory, sockets};
use crate::scribble::{self, SharedMemory};

/// A target of garbage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Target {
    /// A part of the segment of a link over rings.
    Positions,
    Bells,
    Messages,
    Segment,
    /// The table of task states.
    States,
    /// Any words of any writable shared memory, including the arena of results.
    AnySharedMemory,
    /// Shared memory that is read-only.
    ReadOnlyMemory,
    /// Well-formed outcomes, for tasks that the worker may or may not have.
    ForgedAnswers,
    /// Credit for bytes that were not consumed.
    Credit,
    /// Packets that claim to be longer or shorter than they are.
    Lengths,
    /// Descriptors attached to a packet.
    Attachments,
    /// A descriptor, which is closed.
    Close,
    /// A descriptor, which is replaced by another file.
    Replace,
    /// The flags of an open file.
    Flags,
    /// The contents of an open file.
    Garbage,
    /// Bytes that others have written, which are read away.
    Read,
    /// The free room of a file, which is filled up.
    Fill,
    /// Both directions of a socket.
    ShutDown,
    /// The length of a file.
    Truncate,
    /// A flood of garbage on stdout and stderr.
    Output,
}

const BOTH: [Target; 15] = [
    Target::AnySharedMemory,
    Target::AnySharedMemory,
    Target::ReadOnlyMemory,
    Target::ForgedAnswers,
    Target::ForgedAnswers,
    Target::Attachments,
    Target::Close,
    Target::Replace,
    Target::Flags,
    Target::Garbage,
    Target::Read,
    Target::Fill,
    Target::ShutDown,
    Target::Truncate,
    Target::Output,
];

const RING: [Target; 5] =
    [Target::Positions, Target::Bells, Target::Messages, Target::Segment, Target::States];

const IPC: [Target; 3] = [Target::Credit, Target::Lengths, Target::States];

/// Upper bound of the descriptors of a worker.
const END: i32 = 24;

/// The process of a guilty task.
pub(super) struct Scene {
    pub(super) random: Random,
    pub(super) link: Wire,
    /// The first descriptor that may be harmed.
    pub(super) first: i32,
}

impl Scene {
    fn numbers(&mut self) -> Vec<i32> {
        let percent = *self.random.choose(&[5, 15, 40, 100]);
        (self.first..END).filter(|_| self.random.chance(percent)).collect()
    }

    /// Returns some of the open files.
    pub(super) fn files(&mut self) -> Vec<OwnedFd> {
        let numbers = self.numbers();
        numbers.into_iter().filter_map(|number| misdeeds::duplicate(number).ok()).collect()
    }
}

impl Target {
    pub(super) fn any(random: &mut Random, link: Wire) -> Self {
        let own: &[Self] = match link {
            Wire::Ring => &RING,
            Wire::Ipc => &IPC,
        };
        let from = if random.chance(35) { own } else { &BOTH };
        *random.choose(from)
    }

    /// Scribbles over the target. Fails silently if an earlier scribble has taken away what it
    /// needs.
    pub(super) fn scribble(self, scene: &mut Scene) {
        match self {
            Self::Positions => over_the_segment(scribble::Target::Positions, scene),
            Self::Bells => over_the_segment(scribble::Target::Bells, scene),
            Self::Messages => over_the_segment(scribble::Target::Messages, scene),
            Self::Segment => over_the_segment(scribble::Target::Everything, scene),
            Self::States => memory::scribble_over_the_states(&mut scene.random),
            Self::AnySharedMemory => memory::scribble_anywhere(&mut scene.random),
            Self::ReadOnlyMemory => memory::fail_to_scribble(&mut scene.random),
            Self::ForgedAnswers => sockets::forge_answers(scene),
            Self::Credit => sockets::claim_credit(scene),
            Self::Lengths => sockets::claim_lengths(scene),
            Self::Attachments => sockets::attach_descriptors(scene),
            Self::Close => scene.numbers().into_iter().for_each(misdeeds::close),
            Self::Replace => replace(scene),
            Self::Flags => {
                let flags = [OFlags::empty(), OFlags::NONBLOCK, OFlags::APPEND, OFlags::all()];
                for file in scene.files() {
                    let _ = fcntl_setfl(file, *scene.random.choose(&flags));
                }
            }
            Self::Garbage => write(scene, 1, 100),
            Self::Fill => {
                let files = scene.files();
                for file in &files {
                    let _ = fcntl_setfl(file, OFlags::NONBLOCK);
                }
                fill(files, scene, 200, 8 << 10);
            }
            Self::Read => read(scene),
            Self::ShutDown => {
                for file in scene.files() {
                    let how = [Shutdown::Read, Shutdown::Write, Shutdown::Both];
                    let _ = shutdown(file, *scene.random.choose(&how));
                }
            }
            Self::Truncate => {
                for file in scene.files() {
                    let length = *scene.random.choose(&[0, 1, 4096, 1 << 30]);
                    let _ = ftruncate(file, length);
                }
            }
            Self::Output => {
                let files = (scene.first..3).filter_map(|number| misdeeds::duplicate(number).ok());
                fill(files.collect(), scene, 8, 20_000);
            }
        }
    }
}

fn over_the_segment(target: scribble::Target, scene: &mut Scene) {
    SharedMemory::of_this_process().scribble(target, &mut scene.random);
}

fn replace(scene: &mut Scene) {
    for number in scene.numbers() {
        match scene.random.within(0..3) {
            0 => {
                if let Ok(nowhere) = File::open("/dev/null") {
                    let _ = misdeeds::replace(number, nowhere);
                }
            }
            1 => {
                // A writer to it waits, as nobody reads; a reader finds nothing.
                if let Ok((one, other)) = UnixStream::pair() {
                    let _ = misdeeds::replace(number, one);
                    std::mem::forget(other);
                }
            }
            _ => {
                let other = i32::try_from(scene.random.within(3..24)).expect("a number");
                if let Ok(file) = misdeeds::duplicate(other) {
                    let _ = misdeeds::replace(number, file);
                }
            }
        }
    }
}

fn read(scene: &mut Scene) {
    for file in scene.files() {
        let _ = fcntl_setfl(&file, OFlags::NONBLOCK);
        let _ = File::from(file).read(&mut [0; 4096]);
    }
}

fn write(scene: &mut Scene, times: usize, most: u64) {
    let files = scene.files();
    fill(files, scene, times, most);
}

/// Writes until there is no room, for a bounded number of times, as somebody may be reading.
fn fill(files: Vec<OwnedFd>, scene: &mut Scene, times: usize, most: u64) {
    for mut file in files.into_iter().map(File::from) {
        for _ in 0..times {
            let length = scene.random.within(1..most + 1);
            let bytes: Vec<u8> =
                (0..length).map(|_| scene.random.number().to_le_bytes()[0]).collect();
            if file.write(&bytes).is_err() {
                break;
            }
        }
    }
}
