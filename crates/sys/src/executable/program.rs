//! Finds the main program in memory, from its own program headers.

use std::ffi::c_int;
use std::ops::Range;
use std::slice;
use std::sync::OnceLock;

/// The main program as loaded into memory.
#[derive(Debug, Default)]
pub(super) struct Program {
    /// Offset that the loader added to every address of the file; zero for a program with a fixed
    /// address.
    pub(super) base: usize,
    /// The executable segments.
    pub(super) code: Vec<Range<usize>>,
    /// The GNU build id, if the linker has put one in.
    pub(super) build_id: Option<Vec<u8>>,
    /// It names a dynamic loader, so it is not linked statically.
    pub(super) has_loader: bool,
}

impl Program {
    /// Returns `true` if machine code of the main program lies at the address. Some linkers put
    /// constants into the segment of the code, which count as code then.
    pub(super) fn is_code(&self, address: usize) -> bool {
        self.code.iter().any(|segment| segment.contains(&address))
    }

    /// Returns the number of bytes of code.
    pub(super) fn code_size(&self) -> usize {
        self.code.iter().map(ExactSizeIterator::len).sum()
    }
}

/// Bits of an address that may differ within a program, where it has no headers.
const OFFSET: usize = (1 << 39) - 1;

/// Returns the main program, which is read once, as it never moves.
pub(super) fn program() -> &'static Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let mut program = Program::default();
        if cfg!(any(not(target_os = "linux"), brigade_elsewhere)) {
            // Threads of this process are the only workers.
            program.base = (read_first as *const ()).addr() & !OFFSET;
            program.code.push(program.base..program.base + OFFSET);
            return program;
        }
        // SAFETY: the callback has the type that the function asks for, and `data` is the `Program`
        // it expects, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(read_first), (&raw mut program).cast()) };
        program
    })
}

/// Reads the first object, which is the main program by the definition of `dl_iterate_phdr`, and
/// stops.
unsafe extern "C" fn read_first(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    data: *mut libc::c_void,
) -> c_int {
    // SAFETY: the loader passes a valid `info`, and `data` is the pointer that `program` passed,
    // borrowed by nobody else.
    let (info, program) = unsafe { (&*info, &mut *data.cast::<Program>()) };
    // SAFETY: the loader reports the address of the headers, and they stay there as long as the
    // program runs.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    program.base = address(info.dlpi_addr);
    let range = |header: &libc::Elf64_Phdr| {
        let start = program.base.wrapping_add(address(header.p_vaddr));
        start..start.saturating_add(address(header.p_memsz))
    };
    let loaded = |flag| {
        headers
            .iter()
            .filter(move |header| header.p_type == libc::PT_LOAD && header.p_flags & flag != 0)
            .map(range)
    };
    program.code = loaded(libc::PF_X).collect();
    program.has_loader = headers.iter().any(|header| header.p_type == libc::PT_INTERP);
    program.build_id = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_NOTE)
        .filter(|header| loaded(libc::PF_R).any(|segment| covers(&segment, &range(header))))
        .find_map(|header| {
            let range = range(header);
            // SAFETY: the range lies in a loaded, readable segment, which is never unmapped; notes
            // are never written.
            let notes = unsafe { slice::from_raw_parts(range.start as *const u8, range.len()) };
            build_id(notes, address(header.p_align)).map(<[u8]>::to_vec)
        });
    1
}

fn covers(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Returns the description of the note of type `NT_GNU_BUILD_ID` (3) and owner `GNU`.
fn build_id(mut notes: &[u8], alignment: usize) -> Option<&[u8]> {
    // The ELF standard says 4; 64-bit GNU property notes use 8. Other values mean 4.
    let alignment = if alignment == 8 { 8 } else { 4 };
    loop {
        let header: &[u8; 12] = notes.first_chunk()?;
        let [name_size, description_size, kind] = [0, 4, 8].map(|at| {
            u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        });
        let name_end = 12_usize.checked_add(name_size as usize)?;
        let start = name_end.checked_next_multiple_of(alignment)?;
        let end = start.checked_add(description_size as usize)?;
        let (name, description) = (notes.get(12..name_end)?, notes.get(start..end)?);
        if kind == 3 && name == b"GNU\0" && !description.is_empty() {
            return Some(description);
        }
        notes = notes.get(end.checked_next_multiple_of(alignment)?..)?;
    }
}

/// Converts an address or size from the loader, which has the width of a pointer on every supported
/// target.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the ELF class of the program is that of its pointers"
)]
const fn address(number: u64) -> usize {
    number as usize
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU8;

    use super::*;

    fn note(name: &[u8], kind: u32, description: &[u8], alignment: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let size = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap();
        for number in [size(name), size(description), kind] {
            bytes.extend(number.to_ne_bytes());
        }
        bytes.extend(name);
        bytes.resize(bytes.len().next_multiple_of(alignment), 0);
        bytes.extend(description);
        bytes.resize(bytes.len().next_multiple_of(alignment), 0);
        bytes
    }

    #[test]
    fn only_addresses_of_code_count_as_code() {
        // Constants may lie beside the code; data that change cannot.
        static DATA: AtomicU8 = AtomicU8::new(1);
        assert!(program().is_code(only_addresses_of_code_count_as_code as *const () as usize));
        assert!(!program().is_code(&raw const DATA as usize));
        assert!(!program().is_code(0));
        assert!(program().code_size() > 1000);
    }

    #[test]
    fn the_build_id_is_found_behind_other_notes() {
        for alignment in [4, 8] {
            let mut notes = note(b"GNU\0", 5, &[1; 16], alignment);
            notes.extend(note(b"Go\0", 3, &[2; 3], alignment));
            notes.extend(note(b"GNU\0", 3, &[9; 20], alignment));
            assert_eq!(build_id(&notes, alignment), Some(&[9; 20][..]));
        }
    }

    #[test]
    fn damaged_notes_have_no_build_id() {
        let whole = note(b"GNU\0", 3, &[9; 20], 4);
        for length in 0..whole.len() {
            assert_eq!(build_id(&whole[..length], 4), None);
        }
        assert_eq!(build_id(&[0xff; 64], 4), None);
        assert_eq!(build_id(&note(b"GNU\0", 3, &[], 4), 4), None);
    }
}
