//! The headers, sections and symbols of executables and libraries, in ELF for 64 bits.

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// `O_PATH`: finds a file without opening it, because opening a device or a pipe may do something,
/// or wait.
const PATH: i32 = 0o10_000_000;
/// `O_NONBLOCK`.
const NONBLOCK: i32 = 0o4000;

/// Sizes and numbers of the standard (elf(5)).
const HEADER: usize = 64;
const SEGMENT: usize = 56;
const SECTION: usize = 64;
const SYMBOL: usize = 24;
const LOADED: u32 = 1;
const EXECUTABLE: u32 = 1;
const FUNCTION: u8 = 2;
/// `SHF_COMPRESSED`.
const COMPRESSED: u64 = 0x800;

/// Bytes of sections that are read of a file: a header may claim any length, and sections may
/// overlap.
const MAX_READ: u64 = 64 << 20;

/// Symbols are read in parts of this size.
const PART: u64 = 8192 * SYMBOL as u64;

/// Maximum length of a name of a symbol that is read.
const MAX: usize = 1024;

/// An executable or a library. Its content may be hostile.
///
/// ```
/// use brigade_sys::elf::Elf;
///
/// let own = Elf::open("/proc/self/exe".as_ref()).expect("this program");
/// assert!(!own.section(".text").expect("code").bytes.is_empty());
/// assert!(Elf::open("/dev/null".as_ref()).is_none());
/// ```
#[derive(Debug)]
pub struct Elf {
    file: File,
    length: u64,
    header: [u8; HEADER],
    /// Bytes that may still be read.
    left: AtomicU64,
}

/// A section of a file.
#[derive(Debug)]
pub struct Section {
    /// The address of its first byte, as the file has it.
    pub address: u64,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl Elf {
    /// Opens a regular file; `None` if it is something else.
    pub fn open(path: &Path) -> Option<Self> {
        let open = |flags| OpenOptions::new().read(true).custom_flags(flags).clone();
        let found = open(PATH).open(path).ok()?;
        if !found.metadata().ok()?.is_file() {
            return None;
        }
        // The file that was found, whatever has the path by now.
        let found = format!("/proc/self/fd/{}", found.as_raw_fd());
        Self::of(open(NONBLOCK).open(found).ok()?)
    }

    /// Reads the header of an open file; `None` if it has another one.
    pub(crate) fn of(file: File) -> Option<Self> {
        let length = file.metadata().ok()?.len();
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, 0).ok()?;
        let is_elf = header.starts_with(b"\x7fELF\x02\x01");
        is_elf.then(|| Self { file, length, header, left: AtomicU64::new(MAX_READ) })
    }

    /// Returns the address, as the file has it, of a position in its code.
    pub fn address_of(&self, position: u64) -> Option<u64> {
        let (at, count) = (word(&self.header, 0x20)?, half(&self.header, 0x38)?);
        let segments = self.read(at, u64::from(count) * SEGMENT as u64)?;
        segments.chunks_exact(SEGMENT).find_map(|it| {
            let is_code = int(it, 0)? == LOADED && int(it, 4)? & EXECUTABLE != 0;
            let (offset, address, length) = (word(it, 8)?, word(it, 0x10)?, word(it, 0x20)?);
            // It is mapped from a multiple of the size of a page on, of which this is a multiple.
            let alignment = word(it, 0x30)?.max(1);
            let inside = offset - offset % alignment..offset.saturating_add(length);
            let inside = is_code && inside.contains(&position);
            inside.then(|| position.wrapping_sub(offset).wrapping_add(address))
        })
    }

    /// Reads a section, unless it is compressed.
    pub fn section(&self, name: &str) -> Option<Section> {
        let header = self.section_header(name)?;
        let is_compressed = word(&header, 8)? & COMPRESSED != 0;
        let bytes = self.read(word(&header, 0x18)?, word(&header, 0x20)?)?;
        (!is_compressed).then_some(Section { address: word(&header, 0x10)?, bytes })
    }

    /// Returns the addresses of a section.
    pub fn range(&self, name: &str) -> Option<Range<u64>> {
        let header = self.section_header(name)?;
        let start = word(&header, 0x10)?;
        Some(start..start.checked_add(word(&header, 0x20)?)?)
    }

    /// Returns the name of the function in which each address lies. Returns `None` if the file has
    /// no symbols. Each call may read as much as the first one.
    pub(crate) fn functions(&self, addresses: &[u64]) -> Option<Vec<Option<String>>> {
        self.left.store(MAX_READ, Relaxed);
        let [symbols, names] = [self.section_header(".symtab")?, self.section_header(".strtab")?];
        let (mut at, mut left) = (word(&symbols, 0x18)?, word(&symbols, 0x20)?);
        let mut found = vec![None; addresses.len()];
        while left > 0 {
            let length = left.min(PART);
            let part = self.bytes(at, length)?;
            for symbol in part.chunks_exact(SYMBOL).filter(|symbol| symbol[4] & 0xf == FUNCTION) {
                let (start, size) = (word(symbol, 8)?, word(symbol, 16)?);
                for (address, name) in addresses.iter().zip(&mut found) {
                    if address.checked_sub(start).is_some_and(|inside| inside < size) {
                        *name = int(symbol, 0);
                    }
                }
            }
            at += length;
            left -= length;
        }
        let names = word(&names, 0x18)?;
        Some(found.into_iter().map(|name| self.text(names.checked_add(name?.into())?)).collect())
    }

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

    /// Reads some of the bytes that may still be read.
    fn read(&self, at: u64, length: u64) -> Option<Vec<u8>> {
        let left = |left: u64| left.checked_sub(length);
        if at.checked_add(length)? > self.length {
            return None;
        }
        self.left.fetch_update(Relaxed, Relaxed, left).ok()?;
        self.bytes(at, length)
    }

    fn bytes(&self, at: u64, length: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.file.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }

    fn text(&self, at: u64) -> Option<String> {
        let mut bytes = vec![0; MAX];
        let length = self.file.read_at(&mut bytes, at).ok()?;
        let end = bytes[..length].iter().position(|byte| *byte == 0)?;
        bytes.truncate(end);
        String::from_utf8(bytes).ok()
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
    use crate::executable::program_path;

    /// Returns the position of an address in the file that is mapped there.
    fn position(address: u64) -> Option<u64> {
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        std::fs::read_to_string("/proc/self/maps").ok()?.lines().find_map(|line| {
            let mut fields = line.split(' ');
            let (start, end) = fields.next()?.split_once('-')?;
            let (start, offset) = (number(start)?, number(fields.nth(1)?)?);
            (start..number(end)?).contains(&address).then(|| address - start + offset)
        })
    }

    #[test]
    fn this_executable_has_code_and_sections() {
        let elf = Elf::open(program_path()).expect("this program");
        assert_eq!(elf.address_of(u64::MAX), None);
        let text = elf.section(".text").expect("code");
        let range = elf.range(".text").expect("code");
        assert_eq!((text.address, text.bytes.len() as u64), (range.start, range.end - range.start));
        let here = this_executable_has_code_and_sections as *const () as u64;
        let address = elf.address_of(position(here).expect("this code")).expect("code");
        assert!(range.contains(&address));
        assert!(elf.section(".tex").is_none());
    }

    #[test]
    fn other_files_are_refused() {
        for path in ["/dev/null", "/", "/nowhere", "/etc/passwd", "/proc/self/maps"] {
            assert!(Elf::open(Path::new(path)).is_none(), "{path}");
        }
    }
}
