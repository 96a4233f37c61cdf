//! `--pipe-part`: the parts of files, cut between records before anything runs.

use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;
use std::sync::Arc;

use brigade::runner::FilePart;

use super::boundary::Boundary;
use super::header::Header;

/// A file that can be read at any place.
pub(crate) struct Seekable<'a> {
    path: &'a Path,
    file: File,
    pub(crate) length: u64,
}

/// Number of bytes in which a boundary is looked for at first.
const FIRST_LOOK: usize = 4096;
/// The same for patterns. The last match counts, as in GNU parallel, and it looks at as many.
const PATTERN_LOOK: usize = 128 * 1024;

impl<'a> Seekable<'a> {
    /// Opens a file or a block device.
    pub(crate) fn open(path: &'a Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let kind = file.metadata()?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(io::Error::new(
                ErrorKind::NotSeekable,
                "it is neither a file nor a block device; use --pipe and redirect standard input",
            ));
        }
        let length = file.seek(SeekFrom::End(0))?;
        Ok(Self { path, file, length })
    }

    /// Returns the parts after the header, each of about `size` bytes and the header.
    pub(crate) fn parts(
        &self,
        size: u64,
        boundary: &Boundary,
        header: &Header,
    ) -> io::Result<Vec<FilePart>> {
        let header = self.header(header)?;
        let ranges = self.ranges(header.len() as u64, size, boundary)?;
        let part = |range| FilePart::new(self.path, range).header(Arc::clone(&header));
        Ok(ranges.into_iter().map(part).collect())
    }

    /// Returns the header of the file; nothing if it has none.
    fn header(&self, header: &Header) -> io::Result<Arc<[u8]>> {
        let (mut bytes, mut look) = (Vec::new(), FIRST_LOOK);
        loop {
            if let Some(length) = header.length_in(&bytes) {
                return Ok(bytes[..length].into());
            }
            if !self.read_on(0, &mut bytes, look)? {
                return Ok(Arc::default());
            }
            Header::check_length(&bytes)?;
            look = bytes.len();
        }
    }

    fn ranges(&self, start: u64, size: u64, boundary: &Boundary) -> io::Result<Vec<Range<u64>>> {
        let mut ranges = Vec::new();
        let mut from = start;
        let mut at = start.saturating_add(size);
        while at < self.length {
            if let Some(cut) = self.boundary_from(at, boundary)? {
                ranges.push(from..cut);
                from = cut;
                at = cut;
            }
            at = at.saturating_add(size);
        }
        if from < self.length {
            ranges.push(from..self.length);
        }
        Ok(ranges)
    }

    /// Returns the first boundary from a position on.
    fn boundary_from(&self, position: u64, boundary: &Boundary) -> io::Result<Option<u64>> {
        let mut look = if boundary.is_pattern() { PATTERN_LOOK } else { FIRST_LOOK };
        let mut bytes = Vec::new();
        while self.read_on(position, &mut bytes, look)? {
            if let Some(place) = boundary.cut(&bytes) {
                return Ok(Some(position + place as u64));
            }
            look = bytes.len();
        }
        Ok(None)
    }

    /// Appends at most `most` bytes to those that were read from a position on. Returns `false` at
    /// the end of the file.
    fn read_on(&self, position: u64, bytes: &mut Vec<u8>, most: usize) -> io::Result<bool> {
        let before = bytes.len();
        bytes.resize(before + most, 0);
        let mut filled = before;
        while filled < bytes.len() {
            match self.file.read_at(&mut bytes[filled..], position + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(filled > before)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranges(text: &str, size: u64, boundary: &Boundary, header: &Header) -> Vec<Range<u64>> {
        let file = tempfile::NamedTempFile::new().expect("disk");
        std::fs::write(file.path(), text).expect("disk");
        let file = Seekable::open(file.path()).expect("a file");
        let header = file.header(header).expect("a file");
        file.ranges(header.len() as u64, size, boundary).expect("a file")
    }

    #[test]
    fn parts_are_those_of_gnu_parallel() {
        let text: String =
            (1..=1000).map(|number| format!("{number}\n")).collect::<Vec<_>>().concat();
        let lines = Boundary::between(b"\n".to_vec(), Vec::new());
        let lengths = |size| -> Vec<u64> {
            let ranges = ranges(&text, size, &lines, &Header::lines(0));
            ranges.iter().map(|range| range.end - range.start).collect()
        };
        assert_eq!(lengths(1000), [1004, 1004, 1004, 881]);
        assert_eq!(lengths(1947), [1948, 1945]);
        assert_eq!(lengths(10_000), [3893]);
    }

    proptest! {
        #[test]
        fn parts_are_the_file_cut_between_records(
            text in "[a>\n]{0,80}",
            size in 1..30_u64,
            header in 0..3_usize,
            texts in 0..3_usize,
        ) {
            let (end, start) = [("\n", ""), ("", ">"), ("\n", ">")][texts];
            let boundary = Boundary::between(end.into(), start.into());
            let lines: usize = text.split_inclusive('\n').take(header).map(str::len).sum();
            let has_header = text.matches('\n').count() >= header;
            let ranges = ranges(&text, size, &boundary, &Header::lines(header));
            let mut from = if has_header { lines as u64 } else { 0 };
            for range in &ranges {
                prop_assert_eq!(range.start, from);
                prop_assert!(range.end > from);
                from = range.end;
            }
            prop_assert_eq!(from, if ranges.is_empty() { from } else { text.len() as u64 });
            for range in ranges.iter().skip(1) {
                let (before, after) = text.split_at(usize::try_from(range.start).expect("small"));
                prop_assert!(before.ends_with(end) && after.starts_with(start) || after.is_empty());
            }
        }
    }
}
