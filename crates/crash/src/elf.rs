//! The headers of executables and libraries, in ELF for 64 bits.

#[cfg(any(test, feature = "backtrace"))]
use std::cell::Cell;
use std::fs::{File, OpenOptions};
#[cfg(feature = "backtrace")]
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// `O_PATH`: finds a file without opening it, because opening a device or a pipe may do something,
/// or wait.
const PATH: i32 = 0o10_000_000;
/// `O_NONBLOCK`.
const NONBLOCK: i32 = 0o4000;

/// Sizes and numbers of the standard (elf(5)).
const HEADER: usize = 64;
const SEGMENT: usize = 56;
#[cfg(any(test, feature = "backtrace"))]
const SECTION: usize = 64;
const LOADED: u32 = 1;
const EXECUTABLE: u32 = 1;

/// Bytes that are read of a file: a header may claim any length, and sections may overlap.
#[cfg(any(test, feature = "backtrace"))]
const MOST_READ: u64 = 64 << 20;

/// `SHF_COMPRESSED`.
#[cfg(any(test, feature = "backtrace"))]
const COMPRESSED: u64 = 0x800;

/// An executable or a library.
pub(crate) struct Elf {
    #[cfg(any(test, feature = "backtrace"))]
    file: File,
    #[cfg(any(test, feature = "backtrace"))]
    header: [u8; HEADER],
    /// Bytes that may still be read.
    #[cfg(any(test, feature = "backtrace"))]
    left: Cell<u64>,
    segments: Vec<Segment>,
}

/// A part of the file that is loaded as code.
struct Segment {
    offset: u64,
    address: u64,
    length: u64,
    /// It is mapped from a multiple of the size of a page on, of which this is a multiple.
    alignment: u64,
}

/// A section of the file.
#[cfg(any(test, feature = "backtrace"))]
pub(crate) struct Section {
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Elf {
    /// Opens a regular file; `None` if it is something else.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let open = |flags| OpenOptions::new().read(true).custom_flags(flags).clone();
        let found = open(PATH).open(path).ok()?;
        if !found.metadata().ok()?.is_file() {
            return None;
        }
        // The file that was found, whatever has the path by now.
        let found = format!("/proc/self/fd/{}", found.as_raw_fd());
        let file: File = open(NONBLOCK).open(found).ok()?;
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, 0).ok()?;
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let (at, count) = (word(&header, 0x20)?, half(&header, 0x38)?);
        let mut segments = vec![0; usize::from(count) * SEGMENT];
        file.read_exact_at(&mut segments, at).ok()?;
        let segments = segments.chunks_exact(SEGMENT);
        let is_code = |it: &&[u8]| {
            int(it, 0) == Some(LOADED) && int(it, 4).is_some_and(|flags| flags & EXECUTABLE != 0)
        };
        let segments = segments.filter(is_code).filter_map(|it| {
            Some(Segment {
                offset: word(it, 8)?,
                address: word(it, 0x10)?,
                length: word(it, 0x20)?,
                alignment: word(it, 0x30)?.max(1),
            })
        });
        let segments = segments.collect();
        Some(Self {
            #[cfg(any(test, feature = "backtrace"))]
            file,
            #[cfg(any(test, feature = "backtrace"))]
            header,
            #[cfg(any(test, feature = "backtrace"))]
            left: Cell::new(MOST_READ),
            segments,
        })
    }

    /// Returns the address, as the file has it, of a position in its code.
    pub(crate) fn address_of(&self, position: u64) -> Option<u64> {
        let inside = |it: &&Segment| {
            let start = it.offset - it.offset % it.alignment;
            (start..it.offset.saturating_add(it.length)).contains(&position)
        };
        let segment = self.segments.iter().find(inside)?;
        Some(position.wrapping_sub(segment.offset).wrapping_add(segment.address))
    }

    /// Reads a section, unless it is compressed.
    #[cfg(any(test, feature = "backtrace"))]
    pub(crate) fn section(&self, name: &str) -> Option<Section> {
        let header = self.section_header(name)?;
        let is_compressed = word(&header, 8)? & COMPRESSED != 0;
        let bytes = self.read(word(&header, 0x18)?, word(&header, 0x20)?)?;
        (!is_compressed).then_some(Section { address: word(&header, 0x10)?, bytes })
    }

    /// Returns the addresses of a section.
    #[cfg(feature = "backtrace")]
    pub(crate) fn range(&self, name: &str) -> Option<Range<u64>> {
        let header = self.section_header(name)?;
        let start = word(&header, 0x10)?;
        Some(start..start.checked_add(word(&header, 0x20)?)?)
    }

    #[cfg(any(test, feature = "backtrace"))]
    fn section_header(&self, name: &str) -> Option<[u8; SECTION]> {
        let (at, count) = (word(&self.header, 0x28)?, half(&self.header, 0x3c)?);
        let sections = self.read(at, u64::from(count) * SECTION as u64)?;
        let names = usize::from(half(&self.header, 0x3e)?) * SECTION;
        let names = sections.get(names..)?.get(..SECTION)?;
        let names = self.read(word(names, 0x18)?, word(names, 0x20)?)?;
        let section = sections.chunks_exact(SECTION).find(|section| {
            let start = int(section, 0).and_then(|at| usize::try_from(at).ok());
            let text = start.and_then(|start| names.get(start..)).unwrap_or_default();
            text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
        })?;
        section.first_chunk().copied()
    }

    #[cfg(any(test, feature = "backtrace"))]
    fn read(&self, at: u64, length: u64) -> Option<Vec<u8>> {
        let left = self.left.get().checked_sub(length)?;
        if at.checked_add(length)? > self.file.metadata().ok()?.len() {
            return None;
        }
        self.left.set(left);
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.file.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn int(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_executable_has_code_and_sections() {
        let elf = Elf::open(Path::new("/proc/self/exe")).expect("this program");
        assert_eq!(elf.address_of(u64::MAX), None);
        let text = elf.section(".text").expect("code");
        assert!(!text.bytes.is_empty() && text.address != 0);
        let own = crate::mapping::own();
        let here = this_executable_has_code_and_sections as *const () as u64;
        let mapping = crate::mapping::find(&own, here).expect("this code");
        let [start, here] = [mapping.start, here]
            .map(|address| elf.address_of(address - mapping.start + mapping.offset).expect("code"));
        assert!((text.address..text.address + text.bytes.len() as u64).contains(&here));
        assert_eq!(
            here.wrapping_sub(start),
            this_executable_has_code_and_sections as *const () as u64 - mapping.start
        );
        assert!(elf.section(".tex").is_none());
    }

    #[test]
    fn other_files_are_refused() {
        for path in ["/dev/null", "/", "/nowhere", "/etc/passwd", "/proc/self/maps"] {
            assert!(Elf::open(Path::new(path)).is_none(), "{path}");
        }
    }
}
