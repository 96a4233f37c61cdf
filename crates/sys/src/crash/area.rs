//! The layout of the shared memory, and the host's view of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::segment::Segment;

/// Number of words for the two records.
pub const WORDS: usize = 2 * RECORD;

/// Position of each field in a record, in words.
pub(super) mod field {
    pub(in crate::crash) const PHASE: usize = 0;
    /// The host's last request for a sample.
    pub(in crate::crash) const REQUEST: usize = 1;
    /// The request that the record answers.
    pub(in crate::crash) const ANSWER: usize = 2;
    pub(in crate::crash) const SIGNAL: usize = 3;
    pub(in crate::crash) const CODE: usize = 4;
    pub(in crate::crash) const ADDRESS: usize = 5;
    pub(in crate::crash) const SYSTEM_CALL: usize = 6;
    pub(in crate::crash) const SENDER: usize = 7;
    pub(in crate::crash) const PROCESS: usize = 8;
    pub(in crate::crash) const THREAD: usize = 9;
    /// Sixteen bytes.
    pub(in crate::crash) const NAME: usize = 10;
    /// The signal that ends the process, if another one follows the first.
    pub(in crate::crash) const LAST_SIGNAL: usize = 12;
    pub(in crate::crash) const STACK_START: usize = 13;
    pub(in crate::crash) const STACK_LENGTH: usize = 14;
    pub(in crate::crash) const MAPS_LENGTH: usize = 15;
    pub(in crate::crash) const MESSAGE_LENGTH: usize = 16;
    /// In the record of samples: not 0 if the process is killed after this one.
    pub(in crate::crash) const IS_LAST: usize = 17;
    /// In the record of samples: the copy that is sampled in place of the process, or 0.
    pub(in crate::crash) const COPY: usize = 18;
    pub(in crate::crash) const REGISTERS: usize = 24;
    pub(in crate::crash) const MESSAGE: usize = 64;
    pub(in crate::crash) const MAPS: usize = MESSAGE + super::MESSAGE_BYTES / 8;
    pub(in crate::crash) const STACK: usize = MAPS + super::MAPS_BYTES / 8;
    /// Memory of the handler.
    pub(in crate::crash) const SCRATCH: usize = STACK + super::STACK_BYTES / 8;
}

/// Number of registers in a record: those of `aarch64`, of which there are more.
pub const REGISTERS: usize = 34;

pub(super) const NAME_BYTES: usize = 16;
pub(super) const MESSAGE_BYTES: usize = 1 << 10;
pub(super) const MAPS_BYTES: usize = 16 << 10;
pub(super) const STACK_BYTES: usize = 64 << 10;
/// Bytes of `/proc/self/maps` that the kernel returns at a time.
pub(super) const SCRATCH_BYTES: usize = 4 << 10;

/// Words of a record.
pub(super) const RECORD: usize = field::SCRATCH + SCRATCH_BYTES / 8;

/// The record has nothing.
pub(super) const EMPTY: u64 = 0;
/// It has the signal, the thread and the registers.
pub(super) const BEGUN: u64 = 1;
/// It has everything.
pub(super) const COMPLETE: u64 = 2;

/// The host's view of a worker's records.
#[derive(Debug, Clone)]
pub struct CrashArea {
    segment: Arc<Segment>,
    offset: usize,
}

/// A record, as a worker wrote it: only its lengths are checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The signal.
    pub signal: i32,
    /// `si_code`: the kernel's reason for the signal if positive, the way of sending otherwise.
    pub code: i32,
    /// The address that could not be used, for signals that have one.
    pub address: u64,
    /// The number of the system call that SIGSYS refused.
    pub system_call: i32,
    /// The process that sent the signal, for signals that were sent.
    pub sender: u32,
    /// The worker's process, in its own view.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The name of the thread.
    pub thread_name: String,
    /// The signal that was about to end the process when the record was last written.
    pub last_signal: i32,
    /// The registers, in the order of the kernel's `ucontext` of the processor.
    pub registers: Vec<u64>,
    /// The address of the first byte of `stack`.
    pub stack_start: u64,
    /// Bytes of the stack from about the stack pointer on, at most 64 KiB.
    pub stack: Vec<u8>,
    /// Lines of `/proc/self/maps`, at most 16 KiB.
    pub maps: Vec<u8>,
    /// The message of a panic, or of the C library, about an abort; at most 1 KiB.
    pub message: String,
    /// `false` if the process ended before the record was complete.
    pub is_complete: bool,
}

impl CrashArea {
    /// Returns the view of the `WORDS` words from `offset` on, or `None` if the segment is shorter.
    pub fn new(segment: &Arc<Segment>, offset: usize) -> Option<Self> {
        let fits = segment.words().len().checked_sub(offset)? >= WORDS;
        fits.then(|| Self { segment: Arc::clone(segment), offset })
    }

    /// Returns the record of a crash, if there is one.
    pub fn crash(&self) -> Option<Snapshot> {
        read(self.crash_record())
    }

    /// Returns the signal that ends the process, if there is a complete record of a crash. Copies
    /// nothing.
    pub fn announced(&self) -> Option<i32> {
        let record = self.crash_record();
        let is_complete = record[field::PHASE].load(Ordering::Acquire) == COMPLETE;
        is_complete.then(|| int(&record[field::LAST_SIGNAL]))
    }

    /// Begins a request for a sample, and returns its number. The host sends the signal after it.
    pub fn ask(&self) -> u64 {
        // Only the host writes the word. If the worker does, its answers do not count.
        self.sample_record()[field::REQUEST].fetch_add(1, Ordering::AcqRel).wrapping_add(1)
    }

    /// Begins the last request before the process is killed: the thread does not go on after the
    /// sample.
    pub fn ask_last(&self) -> u64 {
        self.sample_record()[field::IS_LAST].store(1, Ordering::Release);
        self.ask()
    }

    /// Returns the number that the copy which runs in place of the process has for it, if there is
    /// one.
    pub fn copy(&self) -> Option<u32> {
        let copy = int(&self.sample_record()[field::COPY]).unsigned_abs();
        (copy != 0).then_some(copy)
    }

    /// Returns `true` if the sample of a request, or of a later one, is there.
    pub fn has_answered(&self, request: u64) -> bool {
        self.sample_record()[field::ANSWER].load(Ordering::Acquire) >= request
    }

    /// Returns the sample of a request, or of a later one, if it is there.
    pub fn answer(&self, request: u64) -> Option<Snapshot> {
        self.has_answered(request).then(|| read(self.sample_record())).flatten()
    }

    fn crash_record(&self) -> &[AtomicU64] {
        &self.segment.words()[self.offset..][..RECORD]
    }

    fn sample_record(&self) -> &[AtomicU64] {
        &self.segment.words()[self.offset + RECORD..][..RECORD]
    }
}

/// Copies a record, unless it is empty.
fn read(record: &[AtomicU64]) -> Option<Snapshot> {
    let phase = record[field::PHASE].load(Ordering::Acquire);
    if !matches!(phase, BEGUN | COMPLETE) {
        return None;
    }
    let word = |field: usize| record[field].load(Ordering::Relaxed);
    let part = |field: usize, length: u64, most: usize| {
        let length = usize::try_from(length).unwrap_or(most).min(most);
        bytes(&record[field..], length)
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let name = part(field::NAME, NAME_BYTES as u64, NAME_BYTES);
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
    Some(Snapshot {
        signal: int(&record[field::SIGNAL]),
        code: int(&record[field::CODE]),
        address: word(field::ADDRESS),
        system_call: int(&record[field::SYSTEM_CALL]),
        sender: int(&record[field::SENDER]).unsigned_abs(),
        process: int(&record[field::PROCESS]).unsigned_abs(),
        thread: int(&record[field::THREAD]).unsigned_abs(),
        thread_name: text(name),
        last_signal: int(&record[field::LAST_SIGNAL]),
        registers: (0..REGISTERS).map(|index| word(field::REGISTERS + index)).collect(),
        stack_start: word(field::STACK_START),
        stack: part(field::STACK, word(field::STACK_LENGTH), STACK_BYTES),
        maps: part(field::MAPS, word(field::MAPS_LENGTH), MAPS_BYTES),
        message: text(part(field::MESSAGE, word(field::MESSAGE_LENGTH), MESSAGE_BYTES)),
        is_complete: phase == COMPLETE,
    })
}

/// Returns the low half of a word, in which the worker wrote an `int`.
fn int(word: &AtomicU64) -> i32 {
    let [a, b, c, d, ..] = word.load(Ordering::Relaxed).to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

fn bytes(words: &[AtomicU64], length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length.next_multiple_of(8));
    for word in &words[..length.div_ceil(8)] {
        bytes.extend(word.load(Ordering::Relaxed).to_ne_bytes());
    }
    bytes.truncate(length);
    bytes
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn area() -> (Arc<Segment>, CrashArea) {
        let segment = Arc::new(Segment::create("test", WORDS + 1).expect("memory"));
        let area = CrashArea::new(&segment, 1).expect("room");
        (segment, area)
    }

    #[test]
    fn an_area_has_to_fit_into_its_segment() {
        let (segment, _) = area();
        assert!(CrashArea::new(&segment, 2).is_none());
        assert!(CrashArea::new(&segment, usize::MAX).is_none());
    }

    #[test]
    fn an_empty_area_has_no_crash_and_no_answer() {
        let (_, area) = area();
        assert_eq!((area.crash(), area.announced(), area.answer(1)), (None, None, None));
        assert_eq!((area.ask(), area.ask()), (1, 2));
    }

    proptest! {
        #[test]
        fn a_worker_may_write_anything(
            words in proptest::collection::vec((0..80_usize, any::<u64>()), 1..80),
            phase in 0..4_u64,
        ) {
            let (segment, area) = area();
            for (index, word) in words {
                segment.words()[1 + index].store(word, Ordering::Relaxed);
            }
            segment.words()[1].store(phase, Ordering::Relaxed);
            let crash = area.crash();
            prop_assert_eq!(crash.is_some(), phase == BEGUN || phase == COMPLETE);
            if let Some(crash) = crash {
                prop_assert!(crash.stack.len() <= STACK_BYTES);
                prop_assert!(crash.maps.len() <= MAPS_BYTES);
                prop_assert!(crash.thread_name.len() <= 3 * NAME_BYTES);
            }
        }
    }
}
