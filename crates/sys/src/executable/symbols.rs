//! Names of functions of the main program, for a process that can open no files.
//!
//! The standard library opens and maps the executable at the first backtrace that it prints, which
//! takes a tenth of a second and fails in a sandbox. [`Symbols`] holds a descriptor from before and
//! reads the symbol table when it is needed. It knows neither lines nor inlined functions.

use std::fmt::Write as _;
use std::fs::File;
use std::io;

use super::origin::program_path;
use super::program::program;
use crate::elf::Elf;

/// Maximum number of frames of [`frames`].
const MAX_FRAMES: usize = 128;

/// Returns the return addresses on the stack of this thread, the innermost one first.
pub fn frames() -> Vec<usize> {
    let mut frames = Vec::with_capacity(MAX_FRAMES);
    // SAFETY: the callback has the type that the unwinder asks for, and `frames` outlives the call.
    unsafe { _Unwind_Backtrace(push, (&raw mut frames).cast()) };
    frames
}

/// The state of the unwinder, which only the unwinder can look into.
enum UnwindContext {}

type UnwindStep = unsafe extern "C" fn(*mut UnwindContext, *mut libc::c_void) -> libc::c_int;

/// Continue and stop, as the unwinder knows them (`_URC_NO_REASON`, `_URC_END_OF_STACK`).
const CONTINUE: libc::c_int = 0;
const STOP: libc::c_int = 5;

// The unwinder that the standard library links.
unsafe extern "C" {
    fn _Unwind_Backtrace(step: UnwindStep, data: *mut libc::c_void) -> libc::c_int;
    fn _Unwind_GetIP(context: *mut UnwindContext) -> usize;
}

unsafe extern "C" fn push(context: *mut UnwindContext, data: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `data` is the vector that `frames` passed, borrowed by nobody else.
    let frames = unsafe { &mut *data.cast::<Vec<usize>>() };
    if frames.len() == MAX_FRAMES {
        return STOP;
    }
    // SAFETY: the unwinder passes a valid context.
    frames.push(unsafe { _Unwind_GetIP(context) });
    CONTINUE
}

/// The symbols of the main program.
#[derive(Debug)]
pub struct Symbols(Elf);

impl Symbols {
    /// Opens the executable, and reads its header.
    ///
    /// # Errors
    /// The system's error, if there is no `/proc`.
    pub fn open() -> io::Result<Self> {
        Elf::of(File::open(program_path())?).map(Self).ok_or(io::ErrorKind::InvalidData.into())
    }

    /// Returns one line for each address, with the name of the function in which it lies. Functions
    /// of other objects, and all of a program without symbols, have no name.
    pub fn describe(&self, addresses: &[usize]) -> String {
        let base = program().base;
        let offsets: Vec<_> =
            addresses.iter().map(|address| address.wrapping_sub(base + 1) as u64).collect();
        let names = self.0.functions(&offsets).unwrap_or_default();
        let mut text = String::new();
        for (index, offset) in offsets.iter().enumerate() {
            let name = names.get(index).and_then(Option::as_deref);
            let name = name.map_or_else(|| format!("<unknown at {offset:#x}>"), demangle);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{index:4}: {name}");
        }
        text
    }
}

/// Returns the path in a name of either mangling of Rust, without the hash, and any other name
/// unchanged.
fn demangle(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn here() -> Vec<usize> {
        std::hint::black_box(frames())
    }

    // An optimized build inlines the test itself.
    #[inline(never)]
    fn caller() -> Vec<usize> {
        std::hint::black_box(here())
    }

    #[test]
    fn frames_have_the_names_of_their_functions() {
        let text = Symbols::open().expect("/proc").describe(&caller());
        assert!(text.contains("symbols::tests::here"), "{text}");
        assert!(text.contains("symbols::tests::caller"), "{text}");
        assert_eq!(Symbols::open().expect("/proc").describe(&[1]).lines().count(), 1);
    }

    #[test]
    fn names_of_both_manglings_are_paths_without_a_hash() {
        let legacy = "_ZN5alloc3fmt6format28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE";
        assert_eq!(demangle(legacy), "alloc::fmt::format::{{closure}}");
        let v0 = "_RNvNtNtCs8Nit5YPxMeD_11brigade_sys10executable7symbols6frames";
        assert_eq!(demangle(v0), "brigade_sys::executable::symbols::frames");
        for other in ["main", "_ZN5alloc", "_ZN3\u{e9}E"] {
            assert_eq!(demangle(other), other);
        }
    }
}
