//! Finds the calls on the copy of a stack, by call frame information (`.eh_frame` of DWARF).
//!
//! The tables that this needs are in the files of the modules. They are read once and kept: that of
//! a large program has megabytes.

#[cfg(any(test, target_arch = "aarch64"))]
mod signed;

use std::collections::HashMap;
use std::sync::Arc;

use brigade_sys::crash::{Snapshot, UNKNOWN};
use brigade_sys::elf::{Elf, Section};
use brigade_sys::sync::Mutex;
use framehop::{
    CacheNative, ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Module,
    UnwindRegsNative, Unwinder, UnwinderNative,
};

use crate::files::Modules;
use crate::frame::MAX_FRAMES;
use crate::mapping::{self, Mapping};
use crate::registers::{FRAME_POINTER, instruction, register, stack_pointer};

/// A call: the address at which the thread was in the function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnwoundCall {
    /// An address of the instruction, for the search of its function and line.
    pub(crate) address: u64,
}

/// Bytes of a section, which unwinders share.
type Bytes = Arc<[u8]>;

/// The tables of a file.
#[derive(Clone)]
struct FileTables {
    text: Option<std::ops::Range<u64>>,
    frames: Option<(std::ops::Range<u64>, Bytes)>,
    index: Option<(std::ops::Range<u64>, Bytes)>,
    debug: Option<Bytes>,
}

/// Files whose tables are kept.
const MAX_FILES: usize = 32;

static TABLES: Mutex<Option<HashMap<std::path::PathBuf, FileTables>>> = Mutex::new(None);

/// Values of a frame pointer that is not known which are tried.
const MAX_GUESSES: usize = 16;

/// Returns the calls, the innermost first.
pub(crate) fn calls(
    modules: &Modules,
    record: &Snapshot,
    mappings: &[Mapping],
) -> Vec<UnwoundCall> {
    let mut unwinding = Unwinding {
        modules,
        mappings,
        unwinder: UnwinderNative::new(),
        cache: CacheNative::new(),
        loaded: Vec::new(),
    };
    let (mut calls, mut is_whole) = unwinding.calls(record);
    if is_whole || register(record, FRAME_POINTER) != UNKNOWN {
        return calls;
    }
    // It was looked at from outside. The first function that needs the pointer has its return
    // address right behind the place to which it leads. With a wrong one, calls are left out.
    let words = record.stack.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
    let returns = (record.stack_start..).step_by(8).zip(words);
    let returns =
        returns.filter(|(at, word)| *at > stack_pointer(record) && unwinding.is_code(*word));
    let returns: Vec<u64> = returns.map(|(at, _)| at).take(MAX_GUESSES).collect();
    let mut guess = record.clone();
    for at in returns {
        guess.registers[FRAME_POINTER] = at - 8;
        let found = unwinding.calls(&guess);
        if found.0.len() > calls.len() {
            (calls, is_whole) = found;
        }
        if is_whole {
            break;
        }
    }
    calls
}

/// The state that the guesses of one stack share.
struct Unwinding<'a> {
    modules: &'a Modules,
    mappings: &'a [Mapping],
    unwinder: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    /// By their start.
    loaded: Vec<(u64, Option<File>)>,
}

impl Unwinding<'_> {
    fn is_code(&self, address: u64) -> bool {
        mapping::find(self.mappings, address).is_some_and(|it| it.is_executable)
    }

    /// Returns the calls, and `true` if the outermost one is among them.
    fn calls(&mut self, record: &Snapshot) -> (Vec<UnwoundCall>, bool) {
        let mut read = |address: u64| {
            let at = usize::try_from(address.wrapping_sub(record.stack_start)).map_err(|_| ())?;
            let bytes = record.stack.get(at..).and_then(<[u8]>::first_chunk).ok_or(())?;
            Ok(u64::from_le_bytes(*bytes))
        };
        let mut thread = Thread::of(record, self.mappings);
        let mut calls = Vec::new();
        let mut next = if self.is_code(thread.instruction) {
            Some(FrameAddress::from_instruction_pointer(thread.instruction))
        } else {
            // It has called something that is no code, so the caller is at the top of the stack.
            calls.push(UnwoundCall { address: thread.instruction });
            let caller = thread.caller_of_nothing(&read).filter(|address| self.is_code(*address));
            caller.and_then(FrameAddress::from_return_address)
        };
        let mut registers = thread.registers;
        while let Some(frame) = next
            && calls.len() < MAX_FRAMES
        {
            let address = frame.address_for_lookup();
            let mapping = mapping::find(self.mappings, address).filter(|it| it.is_executable);
            let Some(mapping) = mapping else { break };
            calls.push(UnwoundCall { address });
            let index = self.load(mapping);
            let file = self.loaded[index].1.as_ref();
            let mut caller = file.and_then(|file| file.caller(frame, &mut registers, &mut read));
            if caller.is_none() {
                let cache = &mut self.cache;
                match self.unwinder.unwind_frame(frame, &mut registers, cache, &mut read) {
                    Ok(None) => return (calls, true),
                    found => caller = found.ok().flatten(),
                }
            }
            next = caller.and_then(FrameAddress::from_return_address);
        }
        (calls, false)
    }

    /// Returns the position of a file.
    fn load(&mut self, mapping: &Mapping) -> usize {
        let index = self.loaded.iter().position(|(start, _)| *start == mapping.start);
        index.unwrap_or_else(|| {
            let file = File::of(self.modules, mapping);
            if let Some(file) = &file {
                self.unwinder.add_module(file.module(mapping));
            }
            self.loaded.push((mapping.start, file));
            self.loaded.len() - 1
        })
    }
}

/// The state of a thread with which unwinding begins.
struct Thread {
    instruction: u64,
    registers: UnwindRegsNative,
    #[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "the stack has it"))]
    link: u64,
}

impl Thread {
    #[cfg(target_arch = "x86_64")]
    fn of(record: &Snapshot, _: &[Mapping]) -> Self {
        let (instruction, stack) = (instruction(record), stack_pointer(record));
        let registers = UnwindRegsNative::new(instruction, stack, register(record, FRAME_POINTER));
        Self { instruction, registers, link: 0 }
    }

    #[cfg(target_arch = "aarch64")]
    fn of(record: &Snapshot, mappings: &[Mapping]) -> Self {
        let (instruction, stack) = (instruction(record), stack_pointer(record));
        let (frame, link) = (register(record, FRAME_POINTER), register(record, 30));
        let mask = signed::mask(mappings);
        let registers = UnwindRegsNative::new_with_ptr_auth_mask(mask, link, stack, frame);
        Self { instruction, registers, link: registers.lr() }
    }

    /// Returns from the call of an address that is no code.
    #[cfg(target_arch = "x86_64")]
    fn caller_of_nothing(&mut self, read: &impl Fn(u64) -> Result<u64, ()>) -> Option<u64> {
        let caller = read(self.registers.sp()).ok()?;
        self.registers.set_sp(self.registers.sp().wrapping_add(8));
        Some(caller)
    }

    #[cfg(target_arch = "aarch64")]
    fn caller_of_nothing(&mut self, _: &impl Fn(u64) -> Result<u64, ()>) -> Option<u64> {
        Some(self.link)
    }
}

/// A file that is mapped as code.
struct File {
    /// The address to which those in the file are relative.
    base: u64,
    tables: FileTables,
}

impl File {
    fn of(modules: &Modules, mapping: &Mapping) -> Option<Self> {
        let path = modules.find(mapping)?.path();
        let elf = Elf::open(&path)?;
        let base = mapping.start.wrapping_sub(elf.address_of(mapping.offset)?);
        let mut all = TABLES.lock();
        let all = all.get_or_insert_default();
        if all.len() >= MAX_FILES && !all.contains_key(&path) {
            all.clear();
        }
        let tables = all.entry(path).or_insert_with(|| FileTables::read(&elf)).clone();
        Some(Self { base, tables })
    }

    fn module(&self, mapping: &Mapping) -> Module<Bytes> {
        let FileTables { text, frames, index, debug } = self.tables.clone();
        let (eh_frame_svma, eh_frame) = frames.unzip();
        let (eh_frame_hdr_svma, eh_frame_hdr) = index.unzip();
        let sections = ExplicitModuleSectionInfo {
            text_svma: text,
            eh_frame_svma,
            eh_frame,
            eh_frame_hdr_svma,
            eh_frame_hdr,
            debug_frame: debug,
            ..ExplicitModuleSectionInfo::default()
        };
        Module::new(String::new(), mapping.start..mapping.end, self.base, sections)
    }

    /// Returns to the caller of a function whose tables the unwinder does not read.
    #[cfg(target_arch = "aarch64")]
    fn caller(
        &self,
        frame: FrameAddress,
        registers: &mut UnwindRegsNative,
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Option<u64> {
        let (frames, index) = (self.tables.frames.as_ref()?, self.tables.index.as_ref()?);
        let tables = signed::Tables {
            frames: (frames.0.start, &frames.1),
            index: (index.0.start, &index.1),
            text: self.tables.text.as_ref().map_or(0, |text| text.start),
        };
        let address = frame.address_for_lookup().wrapping_sub(self.base);
        tables.caller(address, !frame.is_return_address(), registers, read)
    }

    #[cfg(not(target_arch = "aarch64"))]
    #[expect(clippy::unused_self, reason = "it is used on ARM")]
    fn caller(
        &self,
        _: FrameAddress,
        _: &mut UnwindRegsNative,
        _: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Option<u64> {
        None
    }
}

impl FileTables {
    fn read(elf: &Elf) -> Self {
        let with_range = |section: Section| {
            let end = section.address.saturating_add(section.bytes.len() as u64);
            (section.address..end, section.bytes.into())
        };
        Self {
            text: elf.range(".text"),
            frames: elf.section(".eh_frame").map(with_range),
            index: elf.section(".eh_frame_hdr").map(with_range),
            debug: elf.section(".debug_frame").map(|section| section.bytes.into()),
        }
    }
}
