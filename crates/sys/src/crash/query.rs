//! Asks the kernel for single mappings of this process, in a signal handler.
//!
//! `/proc/self/maps` as a text takes 2 µs for each line. Linux 6.11 answers for a single address
//! (`PROCMAP_QUERY` in `linux/fs.h`), and skips what is not code.

use std::os::fd::RawFd;

use super::maps::MapsEntry;

/// Mappings of code that are asked for: more than a program with hundreds of libraries has.
const MAX: usize = 1024;

const REQUEST: libc::Ioctl = 0xc068_6611_u32 as libc::Ioctl;

const READABLE: u64 = 1;
const WRITABLE: u64 = 2;
const EXECUTABLE: u64 = 4;
/// The first mapping that contains the address or lies above it.
const OR_NEXT: u64 = 0x10;

const MAX_NAME: u32 = 512;

/// The kernel's structure of a query and its answer.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    rights: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    device: [u32; 2],
    name_size: u32,
    build_id_size: u32,
    name: u64,
    build_id: u64,
}

/// The memory to which a line is written.
pub(super) struct Line {
    /// `MAX_NAME` bytes.
    pub(super) name: *mut u8,
    pub(super) to: *mut u8,
    pub(super) room: usize,
}

/// The kind of mapping that is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Any,
    Readable,
    Code,
}

/// Returns the first mapping of this kind that contains the address or lies above it. Writes its
/// line, as the text has it, and returns the length of the line.
///
/// # Safety
/// The memory of the line is valid.
pub(super) unsafe fn query(
    maps: RawFd,
    address: u64,
    which: Which,
    line: &Line,
) -> Option<(MapsEntry, usize)> {
    let flags = match which {
        Which::Any => OR_NEXT,
        Which::Readable => OR_NEXT | READABLE,
        Which::Code => OR_NEXT | EXECUTABLE,
    };
    let mut query = Query {
        size: size_of::<Query>() as u64,
        flags,
        address,
        name_size: MAX_NAME,
        name: line.name.addr() as u64,
        ..Query::default()
    };
    // SAFETY: the structure has the size that it says, and the caller provides room for the name.
    if unsafe { libc::ioctl(maps, REQUEST, &raw mut query) } != 0 {
        return None;
    }
    let mut text = Text { to: line.to, room: line.room, length: 0 };
    text.hexadecimal(query.start);
    text.byte(b'-');
    text.hexadecimal(query.end);
    text.byte(b' ');
    for (right, letter) in [(READABLE, b'r'), (WRITABLE, b'w'), (EXECUTABLE, b'x')] {
        text.byte(if query.rights & right != 0 { letter } else { b'-' });
    }
    text.bytes(b"p ");
    text.hexadecimal(query.offset);
    text.byte(b' ');
    let [major, minor] = query.device;
    // As the kernel writes them, at least two digits.
    for (part, end) in [(major, b':'), (minor, b' ')] {
        if part < 16 {
            text.byte(b'0');
        }
        text.hexadecimal(part.into());
        text.byte(end);
    }
    text.decimal(query.inode);
    text.byte(b' ');
    // SAFETY: the kernel has written that many bytes, with a zero at the end.
    let name = unsafe {
        let length = (query.name_size.min(MAX_NAME) as usize).saturating_sub(1);
        std::slice::from_raw_parts(line.name, length)
    };
    text.bytes(name);
    text.byte(b'\n');
    // Addresses have the width of a pointer.
    let number = |address: u64| usize::try_from(address).unwrap_or(0);
    let is_readable = query.rights & READABLE != 0;
    let mapping = MapsEntry { start: number(query.start), end: number(query.end), is_readable };
    Some((mapping, if text.length <= text.room { text.length } else { 0 }))
}

/// Calls `each` with each mapping of code, until it returns `false` or there is none left. Returns
/// `false` if the kernel knows no queries.
pub(super) fn for_each_code(mut ask: impl FnMut(u64) -> Option<MapsEntry>) -> bool {
    let mut address = 0;
    for _ in 0..MAX {
        match ask(address) {
            Some(mapping) => address = mapping.end as u64,
            None => break,
        }
    }
    address != 0
}

/// Writes text to memory, and counts what had no room.
struct Text {
    to: *mut u8,
    room: usize,
    length: usize,
}

impl Text {
    fn byte(&mut self, byte: u8) {
        if self.length < self.room {
            // SAFETY: there is room.
            unsafe { self.to.add(self.length).write(byte) };
        }
        self.length += 1;
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.byte(*byte);
        }
    }

    fn hexadecimal(&mut self, number: u64) {
        self.digits(number, 16);
    }

    fn decimal(&mut self, number: u64) {
        self.digits(number, 10);
    }

    fn digits(&mut self, number: u64, base: u64) {
        let mut power = 1;
        while number / power >= base {
            power *= base;
        }
        while power > 0 {
            let [digit, ..] = (number / power % base).to_le_bytes();
            self.byte(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 });
            power /= base;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsRawFd;

    use super::*;

    /// The lines of code, from queries, with one space between fields.
    fn queried() -> Option<Vec<String>> {
        let maps = File::open("/proc/self/maps").expect("/proc");
        let (mut name, mut text) = ([0; MAX_NAME as usize], [0; 1024]);
        let mut lines = Vec::new();
        let known = for_each_code(|address| {
            let line = Line { name: name.as_mut_ptr(), to: text.as_mut_ptr(), room: text.len() };
            // SAFETY: both arrays are valid, and as long as the line says.
            let (mapping, length) =
                unsafe { query(maps.as_raw_fd(), address, Which::Code, &line) }?;
            lines.push(String::from_utf8_lossy(&text[..length]).trim().to_owned());
            Some(mapping)
        });
        known.then_some(lines)
    }

    #[test]
    fn a_query_has_the_lines_of_the_text() {
        // A kernel before 6.11 has no queries.
        let Some(queried) = queried() else { return };
        let text = fs::read_to_string("/proc/self/maps").expect("/proc");
        let is_code =
            |line: &&str| line.split(' ').nth(1).is_some_and(|rights| rights.contains('x'));
        // The text has zeros in front of numbers, also of low addresses.
        let number = |text: &str| text.trim_start_matches('0').to_owned();
        let fields = |line: &str| {
            let fields: Vec<_> = line.split_whitespace().collect();
            let range: Vec<_> = fields[0].split('-').map(number).collect();
            (range, number(fields[2]), fields[3..].join(" "))
        };
        // The page of old system calls is in no process.
        let is_mapped = |line: &&str| !line.contains("[vsyscall]");
        let text: Vec<_> = text.lines().filter(is_code).filter(is_mapped).map(fields).collect();
        let queried: Vec<_> = queried.iter().map(|line| fields(line)).collect();
        assert_eq!(queried, text);
    }
}
