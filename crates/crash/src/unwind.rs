//! Finds the calls on the copy of a stack.
//!
//! The tables that this needs are in the files of the modules. They are read once and kept: that of
//! a large program has megabytes.

use std::collections::HashMap;
use std::sync::Arc;

use brigade_sys::crash::Snapshot;
use brigade_sys::sync::Mutex;
use framehop::{
    CacheNative, ExplicitModuleSectionInfo, FrameAddress, Module, UnwindRegsNative, Unwinder,
    UnwinderNative,
};

use crate::elf::{Elf, Section};
use crate::frame::MAX_FRAMES;
use crate::mapping::{self, Mapping};
use crate::registers::{instruction, register, stack_pointer};

/// A call: the address at which the thread was in the function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    /// An address of the instruction, for the search of its function and line.
    pub(crate) address: u64,
}

/// Bytes of a section, which unwinders share.
type Bytes = Arc<[u8]>;

/// The tables of a file.
#[derive(Clone)]
struct Tables {
    text: Option<std::ops::Range<u64>>,
    frames: Option<(std::ops::Range<u64>, Bytes)>,
    index: Option<(std::ops::Range<u64>, Bytes)>,
    debug: Option<Bytes>,
}

/// Files whose tables are kept.
const MOST_FILES: usize = 32;

static TABLES: Mutex<Option<HashMap<std::path::PathBuf, Tables>>> = Mutex::new(None);

/// Returns the calls, the innermost first.
pub(crate) fn calls(record: &Snapshot, mappings: &[Mapping]) -> Vec<Call> {
    let read = |address: u64| {
        let at = usize::try_from(address.wrapping_sub(record.stack_start)).map_err(|_| ())?;
        let bytes = record.stack.get(at..).and_then(<[u8]>::first_chunk).ok_or(())?;
        Ok(u64::from_le_bytes(*bytes))
    };
    let mut thread = Thread::of(record);
    let mut calls = Vec::new();
    let is_code = |address| mapping::find(mappings, address).is_some_and(|it| it.is_executable);
    if !is_code(thread.instruction) {
        // It has called something that is no code, so the caller is at the top of the stack.
        calls.push(Call { address: thread.instruction });
        match thread.caller_of_nothing(&read).filter(|address| is_code(*address)) {
            Some(caller) => thread.instruction = caller,
            None => return calls,
        }
    }
    let is_first_a_return = !calls.is_empty();
    let mut unwinder = UnwinderNative::<Bytes, _>::new();
    let mut cache = CacheNative::<_>::new();
    let mut registers = thread.registers;
    let mut loaded: Vec<u64> = Vec::new();
    let mut read = read;
    let mut next = if is_first_a_return {
        FrameAddress::from_return_address(thread.instruction)
    } else {
        Some(FrameAddress::from_instruction_pointer(thread.instruction))
    };
    while let Some(frame) = next
        && calls.len() < MAX_FRAMES
    {
        let address = frame.address_for_lookup();
        let Some(mapping) = mapping::find(mappings, address).filter(|it| it.is_executable) else {
            break;
        };
        calls.push(Call { address });
        if !loaded.contains(&mapping.start) {
            loaded.push(mapping.start);
            if let Some(module) = module(mapping) {
                unwinder.add_module(module);
            }
        }
        let caller = unwinder.unwind_frame(frame, &mut registers, &mut cache, &mut read);
        next = caller.ok().flatten().and_then(FrameAddress::from_return_address);
    }
    calls
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
    fn of(record: &Snapshot) -> Self {
        let (instruction, stack) = (instruction(record), stack_pointer(record));
        let registers = UnwindRegsNative::new(instruction, stack, register(record, 10));
        Self { instruction, registers, link: 0 }
    }

    #[cfg(target_arch = "aarch64")]
    fn of(record: &Snapshot) -> Self {
        let (instruction, stack) = (instruction(record), stack_pointer(record));
        let (frame, link) = (register(record, 29), register(record, 30));
        Self { instruction, registers: UnwindRegsNative::new(link, stack, frame), link }
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

/// Returns the module of a mapping, with its tables.
fn module(mapping: &Mapping) -> Option<Module<Bytes>> {
    let path = mapping.file();
    let elf = Elf::open(&path)?;
    let base = mapping.start.wrapping_sub(elf.address_of(mapping.offset)?);
    let mut all = TABLES.lock();
    let all = all.get_or_insert_default();
    if all.len() >= MOST_FILES && !all.contains_key(&path) {
        all.clear();
    }
    let tables = all.entry(path).or_insert_with(|| Tables::read(&elf)).clone();
    let Tables { text, frames, index, debug } = tables;
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
    Some(Module::new(String::new(), mapping.start..mapping.end, base, sections))
}

impl Tables {
    fn read(elf: &Elf) -> Self {
        let range =
            |section: &Section| section.address..section.address + section.bytes.len() as u64;
        let with_range = |section: Section| (range(&section), section.bytes.into());
        Self {
            text: elf.section(".text").map(|section| range(&section)),
            frames: elf.section(".eh_frame").map(with_range),
            index: elf.section(".eh_frame_hdr").map(with_range),
            debug: elf.section(".debug_frame").map(|section| section.bytes.into()),
        }
    }
}
