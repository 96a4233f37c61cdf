//! The functions and lines of a file that only a worker has loaded.
//!
//! Such a file may be anything, so it is read by what works on bytes alone: sections are copied,
//! and no other file is opened that it names (split debug information, links to it).

use std::convert::Infallible;
use std::path::Path;

use addr2line::Context;
use addr2line::gimli::{DwarfSections, EndianSlice, LittleEndian};
use brigade_sys::elf::Elf;

/// Copies of the sections of a file.
pub(crate) struct Sections {
    debug: DwarfSections<Vec<u8>>,
    /// The tables of symbols, with their names.
    symbols: Vec<[Vec<u8>; 2]>,
}

/// The size of a symbol in the file.
const SYMBOL: usize = 24;

impl Sections {
    pub(crate) fn copy(path: &Path) -> Option<Self> {
        let elf = Elf::open(path)?;
        let bytes = |name: &str| elf.section(name).map(|section| section.bytes);
        let tables = [[".symtab", ".strtab"], [".dynsym", ".dynstr"]].into_iter();
        let symbols = tables.filter_map(|[table, names]| Some([bytes(table)?, bytes(names)?]));
        let symbols = symbols.collect();
        let section = |name: &str| Ok::<_, Infallible>(bytes(name).unwrap_or_default());
        let debug = DwarfSections::load(|id| section(id.name())).ok()?;
        Some(Self { debug, symbols })
    }

    /// Returns what the sections say about functions and lines.
    pub(crate) fn context(&self) -> Option<Context<EndianSlice<'_, LittleEndian>>> {
        let debug = self.debug.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
        Context::from_dwarf(debug).ok()
    }

    /// Returns the name of the function at an address.
    pub(crate) fn symbol(&self, address: u64) -> Option<&str> {
        self.symbols.iter().find_map(|[table, names]| {
            let start = table.chunks_exact(SYMBOL).find_map(|symbol| {
                const FUNCTION: u8 = 2;
                let word = |at: usize| Some(u64::from_le_bytes(*symbol.get(at..)?.first_chunk()?));
                let inside = address.checked_sub(word(8)?)? < word(16)?;
                let name = u32::from_le_bytes(*symbol.first_chunk()?);
                (symbol[4] & 0xf == FUNCTION && inside).then_some(usize::try_from(name).ok()?)
            })?;
            let name = names.get(start..)?.split(|byte| *byte == 0).next()?;
            std::str::from_utf8(name).ok()
        })
    }
}
