//! The file of this program, and the command that starts another process of it.

use std::env::args_os;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::program::program;

/// The file that the kernel has executed, even if it was replaced or deleted meanwhile.
const EXECUTED: &str = "/proc/self/exe";

/// The command that starts another process of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The file to execute: usually `/proc/self/exe`. Under valgrind, where that is valgrind, the
    /// path of the program.
    pub executed: PathBuf,
    /// The arguments that it takes: none, unless it is the dynamic loader. Then they are those that
    /// it was given up to the path of this program.
    pub arguments: Vec<OsString>,
}

impl Origin {
    /// Returns the command; it is found once.
    ///
    /// # Errors
    /// If `/proc` is not mounted.
    pub fn of_this_program() -> io::Result<&'static Self> {
        static FOUND: OnceLock<Origin> = OnceLock::new();
        match FOUND.get() {
            Some(found) => Ok(found),
            None => Ok(FOUND.get_or_init({
                let found = Self::find()?;
                || found
            })),
        }
    }

    fn find() -> io::Result<Self> {
        let executed = fs::read_link(EXECUTED)?;
        let is_emulated = is_emulated()?;
        let file = if was_loaded() { program_file()? } else { None };
        let file = file.filter(|file| *file != executed);
        let arguments = file.map(|file| {
            let line = fs::read("/proc/self/cmdline").unwrap_or_default();
            let mut arguments = options(&line, &args_os().collect::<Vec<_>>());
            arguments.push(file.into());
            arguments
        });
        Ok(Self {
            executed: if is_emulated { executed } else { EXECUTED.into() },
            arguments: arguments.unwrap_or_default(),
        })
    }

    /// Returns the path of this program if the dynamic loader was executed with it.
    pub fn loaded(&self) -> Option<&Path> {
        self.arguments.last().map(Path::new)
    }

    /// Returns `true` if the dynamic loader would not find this program again. The kernel adds a
    /// word to the path of a file that was deleted or replaced.
    pub fn is_lost(&self) -> bool {
        self.loaded().is_some_and(|path| !path.exists())
    }
}

/// Returns the path through which the file of this program can be opened, even if it was replaced
/// or deleted meanwhile, unless the dynamic loader was executed with it.
pub fn program_path() -> &'static Path {
    let executed = Path::new(EXECUTED);
    // A worker asks this before its first task, and has better things to do than to read files.
    if !was_loaded() {
        return executed;
    }
    Origin::of_this_program().ok().and_then(Origin::loaded).unwrap_or(executed)
}

/// Returns `true` if the kernel has not loaded the loader that the program names: it has executed
/// the loader itself.
fn was_loaded() -> bool {
    // SAFETY: it reads a number that the kernel has left in this process.
    program().has_loader && unsafe { libc::getauxval(libc::AT_BASE) } == 0
}

/// Returns `true` if somebody between this process and the kernel answers questions about the file
/// that was executed, as valgrind does: to `open`, but not to `stat`.
fn is_emulated() -> io::Result<bool> {
    let identity = |file: fs::Metadata| (file.dev(), file.ino());
    // A program without the right to read its own file runs under the kernel alone.
    let Ok(opened) = File::open(EXECUTED) else { return Ok(false) };
    Ok(identity(opened.metadata()?) != identity(fs::metadata(EXECUTED)?))
}

/// Returns the file from which the code of this program was mapped; `None` if that is not known.
fn program_file() -> io::Result<Option<PathBuf>> {
    let Some(code) = program().code.first() else { return Ok(None) };
    let maps = BufReader::new(File::open("/proc/self/maps")?);
    // The program is among the first lines.
    for line in maps.split(b'\n') {
        let line = line?;
        let Some((range, file)) = mapping(&line) else { continue };
        if range.contains(&code.start) {
            // A line feed in a path is written in another way here.
            let is_plain = !file.is_empty() && !file.contains(&b'\\');
            return Ok(is_plain.then(|| OsStr::from_bytes(file).into()));
        }
    }
    Ok(None)
}

/// Returns the addresses and the file of a line of `maps`.
fn mapping(line: &[u8]) -> Option<(Range<usize>, &[u8])> {
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let end = line.iter().position(|byte| *byte == b' ')?;
    let (from, to) = text(&line[..end])?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    // Five fields, then the file behind blanks.
    let file = line.splitn(6, |byte| *byte == b' ').nth(5).unwrap_or_default();
    Some((address(from)?..address(to)?, file.trim_ascii_start()))
}

/// Returns the loader's own options: what stands in the whole command line between its name and
/// that of the program, which has got only `ours`. Returns none if the two do not fit.
fn options(whole: &[u8], ours: &[OsString]) -> Vec<OsString> {
    let whole = whole.strip_suffix(b"\0").unwrap_or(whole).split(|byte| *byte == 0);
    let mut whole: Vec<_> = whole.map(|word| OsString::from_vec(word.to_vec())).collect();
    let Some(name) = whole.len().checked_sub(ours.len()).filter(|name| *name > 0) else {
        return Vec::new();
    };
    // The name of the program may be another one (`--argv0`).
    if ours.get(1..) != whole.get(name + 1..) {
        return Vec::new();
    }
    whole.drain(1..name).collect()
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
    fn a_program_that_was_started_directly_is_executed_again() {
        let origin = Origin::of_this_program().unwrap();
        assert_eq!(*origin, Origin { executed: EXECUTED.into(), arguments: Vec::new() });
        assert_eq!(program_path(), Path::new(EXECUTED));
        assert!(!origin.is_lost());
    }

    #[test]
    fn the_options_of_the_loader_stand_before_the_program() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let whole = b"/lib/ld.so\0--library-path\0/x\0./program\0a\0\0";
        assert_eq!(options(whole, &words(&["./program", "a", ""])), ["--library-path", "/x"]);
        assert!(options(b"/lib/ld.so\0./program\0", &words(&["./program"])).is_empty());
        // A program that has changed its title, as `ps` shows it.
        assert!(options(b"program: serves", &words(&["./program", "a"])).is_empty());
        assert!(options(b"a\0b\0c\0d\0", &words(&["./program", "a"])).is_empty());
        assert!(options(b"", &[]).is_empty());
    }

    #[test]
    fn a_deleted_program_is_lost_to_the_loader() {
        let lost = |path: &str| {
            Origin { executed: EXECUTED.into(), arguments: vec![path.into()] }.is_lost()
        };
        assert!(lost("/proc/self/exe (deleted)"));
        assert!(!lost("/proc/self/exe"));
    }
}
