//! The lines of `/proc/<pid>/maps`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use brigade_sys::executable::program_path;

/// A range of addresses of a process, and what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) is_readable: bool,
    pub(crate) is_writable: bool,
    pub(crate) is_executable: bool,
    /// Position of the first byte in the file.
    pub(crate) offset: u64,
    device: String,
    inode: u64,
    /// Empty for memory that is no file.
    pub(crate) path: String,
}

impl Mapping {
    /// Returns the mappings of the lines, in ascending order, and skips what is none.
    pub(crate) fn parse_all(lines: &[u8]) -> Vec<Self> {
        let mut mappings: Vec<_> =
            lines.split(|byte| *byte == b'\n').filter_map(Self::parse).collect();
        mappings.sort_by_key(|mapping| mapping.start);
        mappings
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let line = String::from_utf8_lossy(line);
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
        let rights = fields.next()?.as_bytes();
        let has = |index: usize, right| rights.get(index) == Some(&right);
        let mapping = Self {
            start,
            end,
            is_readable: has(0, b'r'),
            is_writable: has(1, b'w'),
            is_executable: has(2, b'x'),
            offset: hexadecimal(fields.next()?)?,
            device: fields.next()?.to_owned(),
            inode: fields.next()?.parse().ok()?,
            path: fields.next().unwrap_or_default().trim_start().to_owned(),
        };
        (start < end).then_some(mapping)
    }

    pub(crate) fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Returns `true` if both are parts of the same file. A process with a root of its own has
    /// another path for it.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.inode != 0
            && (self.inode, &self.device, self.name()) == (other.inode, &other.device, other.name())
    }

    /// Returns the path through which the file can be opened: this program's own file may have
    /// been replaced or deleted.
    pub(crate) fn file(&self) -> PathBuf {
        static PROGRAM: OnceLock<Option<Mapping>> = OnceLock::new();
        let program = PROGRAM.get_or_init(|| {
            let here = own as *const () as u64;
            find(&own(), here).cloned()
        });
        match program {
            Some(program) if program.is_same_file(self) => program_path().into(),
            _ => PathBuf::from(&self.path),
        }
    }

    /// Returns the name of the file, or the kernel's name for what is there.
    pub(crate) fn name(&self) -> Option<&str> {
        let path = self.path.strip_suffix(" (deleted)").unwrap_or(&self.path);
        Path::new(path).file_name()?.to_str().filter(|name| !name.is_empty())
    }
}

/// Returns the mappings of this process; none without `/proc`.
pub(crate) fn own() -> Vec<Mapping> {
    Mapping::parse_all(&fs::read("/proc/self/maps").unwrap_or_default())
}

/// Returns the mapping that contains an address.
pub(crate) fn find(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    mappings.iter().find(|mapping| mapping.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_a_mapping() {
        let lines = b"55d0-55e0 r-xp 00002000 fd:00 17          /usr/bin/my shop (deleted)\n\
                      7ff0-7ff8 rw-p 00000000 00:00 0 \nnonsense\n9-1 r--p 0 0:0 0\n";
        let mappings = Mapping::parse_all(lines);
        assert_eq!(mappings.len(), 2);
        assert_eq!(mappings[0].name(), Some("my shop"));
        assert_eq!((mappings[0].start, mappings[0].offset), (0x55d0, 0x2000));
        assert!(mappings[0].is_executable && !mappings[0].is_writable);
        assert_eq!((mappings[1].name(), mappings[1].is_writable), (None, true));
        assert_eq!(find(&mappings, 0x7ff7), Some(&mappings[1]));
        assert_eq!(find(&mappings, 0x7ff8), None);
    }

    #[test]
    fn this_process_has_code() {
        let here = this_process_has_code as *const () as u64;
        let own = own();
        let mapping = find(&own, here).expect("this code");
        assert!(mapping.is_executable && mapping.is_same_file(mapping));
    }
}
