//! A task that writes garbage over the memory that its worker shares with the host, as a stray
//! pointer would.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use brigade_sys::control::ControlSocket;
use brigade_sys::crash;
use brigade_testkit::{Random, pause};
use brigade_testkit_sys::misdeeds;
use brigade_wire::link::ring::{CAPACITY, words};
use brigade_wire::slots::SlotTable;
use brigade_wire::{Finished, FromWorker, Location, Outcome, ring};
use serde::{Deserialize, Serialize};

/// The memory that is written over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// Heads and tails of both rings, and the words that say that there is more.
    Positions,
    /// The words on which the worker sleeps.
    Bells,
    /// The table of task states.
    SlotTable,
    /// The messages in both rings.
    Messages,
    /// The page that says which doorbell to ring. All workers share it, and none can write to it.
    Doorbell,
    /// The records of crashes and samples.
    Records,
    /// The whole segment.
    Everything,
}

/// The task's action after it has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Then {
    /// It returns.
    Returns,
    /// It takes a while and returns.
    Dawdles,
    /// It returns and leaves a thread behind that goes on writing for a while.
    Lingers,
    /// It aborts.
    Aborts,
    /// It does not return.
    Hangs,
}

/// An argument for [`scribbles`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scribble {
    /// The target of the garbage.
    pub target: Target,
    /// The action that follows.
    pub then: Then,
    /// Seed of the garbage.
    pub seed: u64,
    /// The file in which the process records its pid before it begins; see [`noted`].
    pub journal: PathBuf,
}

/// Time that a task dawdles, or a leftover thread goes on.
pub const WHILE: Duration = Duration::from_millis(100);

/// Slots of a worker's table: the pool's credit. The size of the memory is compared with the size
/// that follows from it.
const SLOTS: u16 = 1024;

/// Length of the segment in words.
const LENGTH: usize = words(SLOTS) + crash::WORDS;

/// A task function that scribbles. Returns the seed.
///
/// # Panics
/// Panics if the process cannot find or write its own memory.
pub fn scribbles(order: Scribble) -> u64 {
    let Scribble { target, then, seed, journal } = order;
    note(&journal);
    let memory = SharedMemory::of_this_process();
    let mut random = Random::new(seed);
    memory.scribble(target, &mut random);
    match then {
        Then::Returns => {}
        Then::Dawdles => pause(WHILE),
        Then::Lingers => {
            thread::spawn(move || {
                let begin = Instant::now();
                while begin.elapsed() < WHILE {
                    memory.scribble(target, &mut random);
                }
            });
        }
        Then::Aborts => std::process::abort(),
        Then::Hangs => brigade_testkit::faults::hangs(()),
    }
    seed
}

/// A task function: forges an outcome, before its time, with a value at this offset and of this
/// length in the worker's arena, and then hangs.
///
/// # Panics
/// Panics as [`scribbles`] does, and outside a task.
pub fn forges_a_result_in_its_arena((offset, length): (u64, u64)) {
    let (task, attempt) =
        brigade::worker::task().zip(brigade::worker::attempt()).expect("a running task");
    let outcome = Outcome::InArena(Location { offset, length });
    let (run_time, began) = (Duration::ZERO, brigade_sys::clock::now());
    let answer = Finished { task, attempt, ring_index: 0, run_time, began, worn: false, outcome };
    let mut message = Vec::new();
    FromWorker::Finished(answer).encode_head(&mut message);
    SharedMemory::of_this_process().publish(&message);
    brigade_testkit::faults::hangs(());
}

/// Makes the host believe that this worker has crashed.
///
/// # Panics
/// Panics as [`scribbles`] does, and outside a worker.
pub fn claims_a_crash() {
    SharedMemory::of_this_process().forge_records(&mut Random::new(1));
    let descriptors = (3..64).filter_map(|number| misdeeds::duplicate(number).ok());
    let control =
        { descriptors }.find(|end| ControlSocket::is_end(end)).expect("the control socket");
    let packet = brigade_wire::handshake::FromWorkerControl::Crashed.encode().expect("a packet");
    rustix::net::send(control, &packet, rustix::net::SendFlags::NOSIGNAL).expect("a host");
}

/// Returns the processes that have recorded their pids, in order.
///
/// # Panics
/// Panics if the journal does not exist.
pub fn noted(journal: &Path) -> Vec<u32> {
    let notes = fs::read(journal).expect("the journal");
    notes.as_chunks().0.iter().map(|note| u32::from_le_bytes(*note)).collect()
}

fn note(journal: &Path) {
    let mut file = OpenOptions::new().append(true).open(journal).expect("the journal");
    file.write_all(&std::process::id().to_le_bytes()).expect("a note");
}

/// The memory that this process shares with its host over rings.
pub(crate) struct SharedMemory {
    memory: File,
    /// Address of the segment with the table and the rings.
    begin: u64,
    /// Address of the page that says which doorbell to ring.
    page: u64,
}

impl SharedMemory {
    pub(crate) fn of_this_process() -> Self {
        let maps = fs::read_to_string("/proc/self/maps").expect("a list of its memory");
        let find = |name| {
            let line = maps.lines().find(|line| line.contains(name)).expect("shared memory");
            let (range, _) = line.split_once(' ').expect("a range");
            let (begin, end) = range.split_once('-').expect("a range of two");
            let address = |text| u64::from_str_radix(text, 16).expect("an address");
            (address(begin), address(end))
        };
        let (begin, end) = find("/memfd:brigade ");
        let (page, _) = find("/memfd:brigade-bell ");
        // Up to a whole page, of which the largest have 64 KiB.
        let rest = (end - begin).checked_sub(LENGTH as u64 * 8);
        assert!(rest.is_some_and(|rest| rest < 1 << 16), "another layout than expected: {rest:?}");
        let memory = OpenOptions::new().read(true).write(true).open("/proc/self/mem");
        Self { memory: memory.expect("its memory"), begin, page }
    }

    pub(crate) fn scribble(&self, target: Target, random: &mut Random) {
        match target {
            Target::Positions => {
                for word in [0, 16, 40] {
                    for ring in Self::rings() {
                        if random.chance(70) {
                            self.fill(ring + word, 1, random);
                        }
                    }
                }
            }
            Target::Bells => {
                for ring in Self::rings() {
                    self.fill(ring + 32, 1, random);
                }
            }
            Target::SlotTable => self.fill(0, SlotTable::words(SLOTS), random),
            Target::Messages => {
                for ring in Self::rings() {
                    // A short test uses only the beginning.
                    self.fill(ring + 48, CAPACITY / 16, random);
                }
            }
            Target::Doorbell => {
                let written = self.memory.write_all_at(&random.number().to_le_bytes(), self.page);
                assert!(written.is_err(), "a worker can write to memory that all workers read");
            }
            Target::Records => {
                self.fill(words(SLOTS), crash::WORDS, random);
                self.forge_records(random);
            }
            Target::Everything => self.fill(0, LENGTH, random),
        }
    }

    /// Appends a message to the ring of outcomes, unless it would cross the end of the ring.
    pub(crate) fn publish(&self, message: &[u8]) {
        let length = message.len() as u64;
        let [_, ring] = Self::rings();
        let mut head = [0; 8];
        let place = self.begin + ring as u64 * 8;
        self.memory.read_exact_at(&mut head, place).expect("its own memory");
        let head = u64::from_le_bytes(head);
        let whole = 3 << 40 | length;
        let mut piece = [&u64::to_le_bytes(whole), &length.to_le_bytes(), message].concat();
        piece.resize(piece.len().next_multiple_of(8), 0);
        let words = piece.len() as u64 / 8;
        let index = head % CAPACITY as u64;
        if index + words > CAPACITY as u64 {
            return;
        }
        let data = place + (48 + index) * 8;
        self.memory.write_all_at(&piece, data).expect("its own memory");
        let end = head.wrapping_add(words).to_le_bytes();
        self.memory.write_all_at(&end, place).expect("its own memory");
    }

    /// Returns the position of each ring in the segment, in words.
    fn rings() -> [usize; 2] {
        let length = ring::words(CAPACITY);
        [words(SLOTS) - 2 * length, words(SLOTS) - length]
    }

    /// Makes the records look as if there were a crash and a sample, with anything in them.
    fn forge_records(&self, random: &mut Random) {
        let write = |record: usize, field: usize, value: u64| {
            let place = self.begin + (words(SLOTS) + record + field) as u64 * 8;
            self.memory.write_all_at(&value.to_le_bytes(), place).expect("its own memory");
        };
        for record in [0, crash::WORDS / 2] {
            // The phase, the answer, the signals, and lengths that are too large.
            let signal = *random.choose(&[4, 5, 6, 7, 8, 11, 31]);
            for (field, value) in [(0, 2), (2, u64::MAX), (3, signal), (12, signal), (14, 1 << 40)]
            {
                write(record, field, value);
            }
        }
    }

    fn fill(&self, first: usize, count: usize, random: &mut Random) {
        let garbage = std::iter::repeat_with(|| random.number().to_le_bytes()).take(count);
        let garbage: Vec<u8> = garbage.flatten().collect();
        self.memory.write_all_at(&garbage, self.begin + first as u64 * 8).expect("its own memory");
    }
}
