//! A ring of loom's words that notices errors which no value shows.
//!
//! Loom reorders loads of earlier stores, but it never lets a load see a store that comes later. A
//! producer that overwrites words that the consumer is still reading would go unnoticed. So each
//! data word counts, beside its value, how often it was written and which of these writes was read
//! last, as plain relaxed loom words. Where the protocol orders accesses, each side finds them up
//! to date; where it does not, loom shows them out of date in some interleaving.

use std::sync::atomic::{AtomicUsize, Ordering};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, fence};

use crate::ring::consumer::ReadCursor;
use crate::ring::producer::{Pushed, WriteCursor};
use crate::ring::{COPY, COPY_END, DATA, HEAD, TAIL, words};
use crate::word::Word;

/// Data words: a fragment has at most 16 bytes and takes 3 or 4 of them.
pub(super) const CAPACITY: usize = 16;

/// The shared memory.
#[derive(Clone)]
pub(super) struct Memory(Arc<Vec<Modelled>>);

/// A word with the model's knowledge about it.
pub(super) enum Modelled {
    /// Written by the consumer or never.
    Plain(AtomicU64),
    /// The head, and the copy beside it. The consumer may read a copy while it is written.
    Head {
        value: AtomicU64,
        life: std::sync::Arc<Life>,
    },
    Data {
        value: AtomicU64,
        written: AtomicU64,
        read: AtomicU64,
        life: std::sync::Arc<Life>,
    },
}

/// Number of stores that the producer still does before it is killed.
pub(super) struct Life(AtomicUsize);

impl Life {
    /// Takes one store from the rest; returns `true` if the producer still lives to do it.
    fn spend(&self) -> bool {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    }
}

impl Word for Modelled {
    fn load(&self, ordering: Ordering) -> u64 {
        self.note_read();
        self.value().load(ordering)
    }

    fn store(&self, new: u64, ordering: Ordering) {
        if let Self::Head { life, .. } | Self::Data { life, .. } = self
            && !life.spend()
        {
            return;
        }
        if let Self::Data { written, read, .. } = self {
            let before = written.load(Ordering::Relaxed);
            assert_eq!(read.load(Ordering::Relaxed), before, "overwrote a word before it was read");
            written.store(before + 1, Ordering::Relaxed);
        }
        self.value().store(new, ordering);
    }

    fn swap_if(&self, _: u64, _: u64, _: Ordering, _: Ordering) -> Result<(), u64> {
        unreachable!("no side of a ring swaps a data word");
    }

    fn fence(ordering: Ordering) {
        fence(ordering);
    }

    fn pass_over(data: &[Self], from: u64, to: u64) {
        for position in from..to {
            data[usize::try_from(position).expect("few words") % CAPACITY].note_read();
        }
    }
}

impl Modelled {
    /// Notes that the consumer has read a data word, or passed over it.
    fn note_read(&self) {
        let Self::Data { written, read, .. } = self else { return };
        let written = written.load(Ordering::Relaxed);
        let before = read.load(Ordering::Relaxed);
        assert_eq!(before + 1, written, "read a word that was not published or was read before");
        read.store(written, Ordering::Relaxed);
    }

    fn value(&self) -> &AtomicU64 {
        match self {
            Self::Plain(value) | Self::Head { value, .. } | Self::Data { value, .. } => value,
        }
    }
}

/// One side of a ring.
pub(super) struct Side<C> {
    memory: Memory,
    cursor: C,
}

/// Creates a ring whose producer is killed after `stores` stores from `let_live` on.
pub(super) fn ring() -> (Side<WriteCursor>, Side<ReadCursor>) {
    let life = std::sync::Arc::new(Life(AtomicUsize::new(usize::MAX)));
    let zero = || AtomicU64::new(0);
    let word = |index| match index {
        HEAD | COPY_END | COPY..TAIL => Modelled::Head { value: zero(), life: life.clone() },
        DATA.. => {
            Modelled::Data { value: zero(), written: zero(), read: zero(), life: life.clone() }
        }
        _ => Modelled::Plain(zero()),
    };
    let memory = Memory(Arc::new((0..words(CAPACITY)).map(word).collect()));
    (
        Side { memory: memory.clone(), cursor: WriteCursor::new(CAPACITY) },
        Side { memory, cursor: ReadCursor::new(CAPACITY, 1024) },
    )
}

impl Side<WriteCursor> {
    pub(super) fn push(&mut self, message: &[u8], offset: usize) -> Pushed {
        // In two parts that end within words, as heads and payloads do.
        let (head, payload) = message.split_at(message.len().min(3));
        self.cursor.push(&self.memory.0, head, payload, offset).expect("an honest consumer")
    }

    /// Sends a short item, for which there is room.
    pub(super) fn send_item(&mut self, index: u32, value: &[u8]) {
        let sent = self.cursor.push_item(&self.memory.0, index, value);
        assert!(sent.expect("an honest consumer"));
    }

    /// Sends all of the message from `offset` on, and waits for room.
    pub(super) fn send(&mut self, message: &[u8], mut offset: usize) {
        while offset < message.len() {
            match self.push(message, offset) {
                Pushed::UpTo(end) => offset = end,
                Pushed::Full => loom::thread::yield_now(),
            }
        }
    }

    /// Announces that there is more than there was room for.
    pub(super) fn set_more(&self) {
        WriteCursor::set_more(&self.memory.0, true);
    }

    /// Sets the number of stores that the producer does before it is killed.
    pub(super) fn let_live(&self, stores: usize) {
        let Modelled::Head { life, .. } = &self.memory.0[HEAD] else { unreachable!("the head") };
        life.0.store(stores, Ordering::Relaxed);
    }
}

impl Side<ReadCursor> {
    /// Returns the next message if all of it has arrived.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        let found = self.cursor.advance(&self.memory.0).expect("an honest producer");
        found.then(|| self.cursor.message().to_vec())
    }

    /// Returns the short items that have arrived.
    pub(super) fn take_items(&mut self, first: u32) -> Vec<u8> {
        let mut values = Vec::new();
        if self.cursor.find_published(&self.memory.0).expect("an honest producer") {
            self.cursor.take_items(&self.memory.0, first, u32::MAX, &mut values);
        }
        values
    }

    /// Waits for the next message and returns it.
    pub(super) fn wait(&mut self) -> Vec<u8> {
        loop {
            if let Some(message) = self.take() {
                return message;
            }
            loom::thread::yield_now();
        }
    }

    pub(super) fn more_is_waiting(&self) -> bool {
        ReadCursor::more_is_waiting(&self.memory.0)
    }

    pub(super) fn is_in_the_middle(&self) -> bool {
        self.cursor.is_in_the_middle()
    }
}
