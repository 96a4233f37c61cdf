//! Cuts a stream into blocks of whole records: a pure state machine. The reader fills its buffer,
//! and takes the blocks out.
//!
//! Blocks are cut at the same places as by GNU parallel. Those with a number of records are cut as
//! soon as the records have arrived, all others when the buffer is full.

use super::boundary::Boundary;

/// The amount of data in a block.
#[derive(Debug, Clone)]
pub(crate) enum Amount {
    /// As many whole records as fit.
    Fitting(Boundary),
    /// This many records.
    Records(Boundary, usize),
    /// As many lines as fit, in a multiple of this number.
    Lines(usize),
    /// All that has arrived.
    Arrived,
}

/// Cuts a stream into blocks.
#[derive(Debug)]
pub(crate) struct Cutter {
    amount: Amount,
    /// The size of a block that is aimed at.
    size: usize,
    buffer: Vec<u8>,
    /// Number of bytes in the buffer.
    filled: usize,
    /// With a number of records: those counted so far, and where to look for the next one.
    counted: usize,
    scanned: usize,
    is_first: bool,
}

/// The largest size to which blocks grow for a long record.
const MAX_SIZE: usize = (1 << 31) - 1;

impl Cutter {
    pub(crate) fn new(amount: Amount, size: usize) -> Self {
        let buffer = Vec::new();
        Self { amount, size, buffer, filled: 0, counted: 0, scanned: 0, is_first: true }
    }

    /// Returns the room for data that must be read before the next cut. It is never empty.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        let end = if self.cuts_early() {
            self.filled + self.size.max(self.filled)
        } else {
            self.filled + self.size - self.filled % self.size
        };
        if self.buffer.len() < end {
            // Allocated anew and not extended: the system fills it with zeros when it is used.
            let mut buffer = vec![0; end];
            buffer[..self.filled].copy_from_slice(&self.buffer[..self.filled]);
            self.buffer = buffer;
        }
        &mut self.buffer[self.filled..end]
    }

    /// Returns the bytes that have been read and not cut off.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// Removes bytes from the start.
    pub(crate) fn remove(&mut self, count: usize) {
        self.buffer.copy_within(count..self.filled, 0);
        self.filled -= count;
    }

    /// Takes note of `count` bytes that were read into the room, without a cut.
    pub(crate) fn add(&mut self, count: usize) {
        self.filled += count;
    }

    /// Returns `true` if there is at least as much data as a block is to have.
    pub(crate) fn has_block(&self) -> bool {
        self.filled >= self.size
    }

    /// Passes the blocks that need not be full to `emit`, until it returns `false`.
    pub(crate) fn cut_early(&mut self, mut emit: impl FnMut(&[u8]) -> bool) -> bool {
        !self.cuts_early() || self.cut(false, &mut emit).1
    }

    /// Handles `count` bytes that were read into the room, and passes the blocks that are complete
    /// to `emit`, until it returns `false`.
    pub(crate) fn read(&mut self, count: usize, mut emit: impl FnMut(&[u8]) -> bool) -> bool {
        self.filled += count;
        let cuts_early = self.cuts_early();
        if !cuts_early && !self.filled.is_multiple_of(self.size) {
            return true;
        }
        let (cut, goes_on) = self.cut(false, &mut emit);
        if !cuts_early && cut == 0 {
            // A record is longer than a block.
            self.size = (self.size * 13).div_ceil(10).saturating_add(1).min(MAX_SIZE);
        }
        goes_on
    }

    /// Handles the end of the stream: passes the rest to `emit`.
    pub(crate) fn end(&mut self, mut emit: impl FnMut(&[u8]) -> bool) {
        let (_, goes_on) = self.cut(true, &mut emit);
        if goes_on && self.filled > 0 {
            emit(&self.buffer[..self.filled]);
        }
        self.filled = 0;
    }

    /// Returns `true` if blocks are cut before the buffer is full. More data may change the last
    /// match of a pattern, so patterns are looked for when it is full.
    fn cuts_early(&self) -> bool {
        match &self.amount {
            Amount::Records(boundary, _) => !boundary.is_pattern(),
            Amount::Arrived => true,
            Amount::Fitting(_) | Amount::Lines(_) => false,
        }
    }

    /// Cuts the buffer. Returns the number of bytes cut off, and `true` if more blocks are wanted.
    fn cut(&mut self, is_end: bool, emit: &mut impl FnMut(&[u8]) -> bool) -> (usize, bool) {
        let bytes = &self.buffer[..self.filled];
        let mut cut = 0;
        let mut goes_on = true;
        let mut pass = |end: usize| {
            goes_on = emit(&bytes[cut..end]);
            cut = end;
            goes_on
        };
        match &self.amount {
            Amount::Fitting(boundary) if !is_end => {
                boundary.last(bytes).map(&mut pass);
            }
            Amount::Lines(lines) => {
                let excess = memchr::memchr_iter(b'\n', bytes).count() % lines;
                if let Some(last) = memchr::memrchr_iter(b'\n', bytes).nth(excess) {
                    pass(last + 1);
                }
            }
            Amount::Records(boundary, records) => {
                let is_first = std::mem::take(&mut self.is_first);
                if is_first && !boundary.begins_record(bytes) {
                    // A block of its own for the text before the first record.
                    if let Some(place) = boundary.next(bytes, 0) {
                        self.scanned = place;
                        pass(place);
                    }
                }
                while let Some(place) = boundary.next(bytes, self.scanned) {
                    self.scanned = place;
                    self.counted += 1;
                    if self.counted == *records {
                        self.counted = 0;
                        if !pass(place) {
                            break;
                        }
                    }
                }
                self.scanned -= cut;
            }
            Amount::Arrived if !bytes.is_empty() => {
                pass(bytes.len());
            }
            Amount::Fitting(_) | Amount::Arrived => {}
        }
        if cut > 0 {
            self.remove(cut);
        }
        (cut, goes_on)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn between(end: &str, start: &str) -> Boundary {
        Boundary::between(end.into(), start.into())
    }

    /// Returns the blocks of a text that arrives in pieces of `step` bytes.
    fn blocks(amount: Amount, size: usize, text: &str, step: usize) -> Vec<String> {
        let mut cutter = Cutter::new(amount, size);
        let mut blocks = Vec::new();
        let mut take = |block: &[u8]| {
            blocks.push(String::from_utf8_lossy(block).into_owned());
            true
        };
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let room = cutter.room();
            let count = step.min(room.len()).min(rest.len());
            room[..count].copy_from_slice(&rest[..count]);
            rest = &rest[count..];
            assert!(cutter.read(count, &mut take));
        }
        cutter.end(take);
        blocks
    }

    fn numbers(last: u32) -> String {
        (1..=last).map(|number| format!("{number}\n")).collect::<Vec<_>>().concat()
    }

    fn lines_of(blocks: &[String]) -> Vec<usize> {
        blocks.iter().map(|block| block.lines().count()).collect()
    }

    /// The figures are GNU parallel's.
    #[test]
    fn blocks_are_those_of_gnu_parallel() {
        let text = numbers(1000);
        let fitting = Amount::Fitting(between("\n", ""));
        assert_eq!(lines_of(&blocks(fitting, 1000, &text, 999)), [277, 250, 250, 223]);
        assert_eq!(lines_of(&blocks(Amount::Lines(3), 1000, &text, 70)), [276, 249, 249, 225, 1]);
        let counted = Amount::Records(between("\n", ""), 300);
        assert_eq!(lines_of(&blocks(counted, 1000, &text, 70)), [300, 300, 300, 100]);
        let patterns = |size, records: Option<usize>| {
            let boundary = Boundary::matching("[05]\n", "").expect("valid");
            let amount = match records {
                Some(records) => Amount::Records(boundary, records),
                None => Amount::Fitting(boundary),
            };
            lines_of(&blocks(amount, size, &numbers(100), 64))
        };
        assert_eq!(patterns(100, None), [35, 30, 30, 5]);
        assert_eq!(patterns(1 << 20, Some(5)), [25, 25, 25, 25]);
    }

    #[test]
    fn a_record_longer_than_a_block_stays_whole() {
        let fitting = || Amount::Fitting(between("\n", ""));
        assert_eq!(blocks(fitting(), 2, "abcdefghij\nk\n", 1), ["abcdefghij\n", "k\n"]);
        assert_eq!(blocks(fitting(), 4, "a\nabcdefghij\nk\nl", 9), ["a\n", "abcdefghij\n", "k\nl"]);
    }

    #[test]
    fn text_before_the_first_record_is_a_block() {
        let boundary = || Boundary::matching("\n", "[A-Z]").expect("valid");
        let records = |text| blocks(Amount::Records(boundary(), 1), 100, text, 3);
        assert_eq!(records("x\ny\nA1\na\nB\nC\n"), ["x\ny\n", "A1\na\n", "B\n", "C\n"]);
        assert_eq!(records("A1\na\nB\n"), ["A1\na\n", "B\n"]);
    }

    fn any_amount() -> impl Strategy<Value = (Amount, String, String)> {
        let texts =
            (0..4_usize).prop_map(|which| [("\n", ""), (";", ""), ("", ">"), ("\n", ">")][which]);
        (texts, 0..3_u8, 1..4_usize).prop_map(|((end, start), kind, count)| {
            let amount = match kind {
                0 => Amount::Fitting(between(end, start)),
                1 => Amount::Records(between(end, start), count),
                _ => return (Amount::Lines(count), "\n".to_owned(), String::new()),
            };
            (amount, end.to_owned(), start.to_owned())
        })
    }

    proptest! {
        #[test]
        fn blocks_are_the_input_cut_between_records(
            (amount, end, start) in any_amount(),
            text in "[a>;\n]{0,60}",
            size in 1..20_usize,
            step in 1..9_usize,
        ) {
            let all = blocks(amount.clone(), size, &text, step);
            prop_assert_eq!(all.concat(), text.as_str());
            prop_assert!(all.iter().all(|block| !block.is_empty()));
            for pair in all.windows(2) {
                prop_assert!(pair[0].ends_with(&end) && pair[1].starts_with(&start), "{:?}", all);
            }
            prop_assert_eq!(all, blocks(amount, size, &text, 100));
        }

        #[test]
        fn a_block_has_the_number_of_records(
            text in "[a\n]{0,60}", count in 1..5_usize, size in 1..20_usize,
        ) {
            let all = blocks(Amount::Records(between("\n", ""), count), size, &text, 7);
            let ends = |block: &String| block.matches('\n').count();
            if let Some((last, others)) = all.split_last() {
                prop_assert!(others.iter().all(|block| ends(block) == count));
                prop_assert!(ends(last) <= count);
            }
        }
    }
}
