//! The file that other processes of this program are started from.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::program::program;

/// Returns the file that `/proc/self/exe` names if it is not the main program: the dynamic loader,
/// if somebody has started the program as its argument.
///
/// # Errors
/// If `/proc` is not mounted.
pub fn foreign_starter() -> io::Result<Option<PathBuf>> {
    let started = fs::read_link("/proc/self/exe")?;
    let Some(code) = program().code.first() else { return Ok(None) };
    let maps = BufReader::new(File::open("/proc/self/maps")?);
    // The program is among the first lines.
    for line in maps.split(b'\n') {
        let line = line?;
        let Some((range, file)) = mapping(&line) else { continue };
        if range.contains(&code.start) {
            let is_same = file.is_empty() || file == started.as_os_str().as_bytes();
            // Such a path is written in another way here.
            let is_plain = !OsStr::from_bytes(file).as_bytes().contains(&b'\\');
            return Ok((!is_same && is_plain).then_some(started));
        }
    }
    Ok(None)
}

/// Returns the addresses and the file of a line of `maps`.
fn mapping(line: &[u8]) -> Option<(std::ops::Range<usize>, &[u8])> {
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let end = line.iter().position(|byte| *byte == b' ')?;
    let (from, to) = text(&line[..end])?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    // Five fields, then the file behind blanks.
    let file = line.splitn(6, |byte| *byte == b' ').nth(5).unwrap_or_default();
    Some((address(from)?..address(to)?, file.trim_ascii_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_read() {
        let line = b"55d0-55ff r-xp 00001000 fd:00 1234                       /a b/c (deleted)";
        assert_eq!(mapping(line), Some((0x55d0..0x55ff, &b"/a b/c (deleted)"[..])));
        assert_eq!(mapping(b"7f00-7f01 rw-p 00000000 00:00 0 "), Some((0x7f00..0x7f01, &b""[..])));
        assert_eq!(mapping(b""), None);
    }

    #[test]
    fn a_program_that_was_started_directly_has_no_foreign_starter() {
        assert_eq!(foreign_starter().unwrap(), None);
    }
}
