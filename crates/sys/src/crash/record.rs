//! Writes a record, in a signal handler.

use std::ffi::{c_int, c_void};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{siginfo_t, ucontext_t};

use super::area::{
    BEGUN, COMPLETE, EMPTY, MAPS_BYTES, MESSAGE_BYTES, SCRATCH_BYTES, STACK_BYTES, field,
};
use super::context;
use super::maps::Maps;
use super::query::{Line, Which, for_each_code, query};

/// Code below the stack pointer may use this much of the stack (the red zone of the x86-64 ABI).
pub(super) const RED_ZONE: usize = 128;

/// The list of mappings.
pub(super) struct MapsFile {
    pub(super) descriptor: RawFd,
    /// The kernel may be asked for single ones.
    pub(super) may_query: bool,
}

/// A record of the shared memory, of which this thread is the only writer.
#[derive(Clone, Copy)]
pub(super) struct Record(pub(super) &'static [AtomicU64]);

impl Record {
    /// Writes everything that is known without a system call that a sandbox could forbid, and
    /// returns the stack pointer.
    pub(super) fn begin(self, signal: c_int, info: Option<&siginfo_t>, at: &ucontext_t) -> usize {
        self.set(field::PHASE, EMPTY);
        self.set_int(field::SIGNAL, signal);
        self.set_int(field::LAST_SIGNAL, signal);
        for field in [field::STACK_LENGTH, field::MAPS_LENGTH] {
            self.set(field, 0);
        }
        context::registers(at, |index, value| self.set(field::REGISTERS + index, value));
        if let Some(info) = info {
            self.set_int(field::CODE, info.si_code);
            if info.si_code > 0 {
                // SAFETY: the kernel has filled the part of the structure that faults have.
                self.set(field::ADDRESS, unsafe { info.si_addr() }.addr() as u64);
                self.set_int(field::SYSTEM_CALL, system_call(info));
            } else {
                self.set(field::ADDRESS, 0);
                // SAFETY: the kernel has filled the part that signals from processes have.
                self.set_int(field::SENDER, unsafe { info.si_pid() });
            }
        }
        // SAFETY: both only ask for a number.
        let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
        self.set_int(field::PROCESS, process);
        self.set_int(field::THREAD, thread);
        self.publish(BEGUN);
        let (_, stack_pointer) = context::pointers(at);
        // Addresses have the width of a pointer.
        usize::try_from(stack_pointer).unwrap_or(0)
    }

    /// Adds the name of the thread, the lines of `maps`, and the stack. Returns `true` if the
    /// access to `address` looks like the overflow of the stack.
    pub(super) fn finish(self, maps: &MapsFile, stack_pointer: usize, address: usize) -> bool {
        // The main thread has the name of the process. A sandbox for a single thread may forbid the
        // call.
        if self.get(field::THREAD) != self.get(field::PROCESS) {
            // SAFETY: the kernel writes sixteen bytes, and there is room for them.
            unsafe { libc::prctl(libc::PR_GET_NAME, self.bytes(field::NAME)) };
        }
        let mut found = Maps::new(stack_pointer, address);
        if !(maps.may_query && self.query_maps(maps.descriptor, &mut found)) {
            self.copy_maps(maps.descriptor, &mut found);
        }
        if let Some(stack) = found.stack {
            let wanted = stack_pointer.saturating_sub(RED_ZONE) & !7;
            let from = wanted.max(stack.start);
            let length = (stack.end - from.min(stack.end)).min(STACK_BYTES);
            // SAFETY: the bytes lie in a mapping that is readable, and is the stack of this thread,
            // which nobody unmaps while the thread uses it; the record has room for them.
            unsafe {
                self.bytes(field::STACK).copy_from_nonoverlapping(from as *const u8, length);
            }
            self.set(field::STACK_START, from as u64);
            self.set(field::STACK_LENGTH, length as u64);
        }
        found.is_overflow()
    }

    pub(super) fn complete(self) {
        self.publish(COMPLETE);
    }

    /// Returns `false` if the kernel knows no queries.
    fn query_maps(self, maps: RawFd, found: &mut Maps) -> bool {
        let mut kept = 0;
        let mut ask = |address: u64, which: Which| {
            let (to, room) = (self.bytes(field::MAPS), MAPS_BYTES - kept);
            // SAFETY: the record has room for the line, and the handler's memory for the name.
            let (mapping, length) = unsafe {
                let line = Line { name: self.bytes(field::SCRATCH), to: to.add(kept), room };
                query(maps, address, which, &line)?
            };
            kept += length;
            self.set(field::MAPS_LENGTH, kept as u64);
            Some(mapping)
        };
        if !for_each_code(|address| ask(address, Which::Code)) {
            return false;
        }
        found.set_address(ask(found.address() as u64, Which::Any));
        found.set_stack(ask(found.stack_pointer() as u64, Which::Readable));
        true
    }

    fn copy_maps(self, maps: RawFd, found: &mut Maps) {
        // SAFETY: the memory belongs to the record, which this thread alone writes; references into
        // it end before the next call that writes there.
        let scratch = |from: usize, to: usize| unsafe {
            std::slice::from_raw_parts(self.bytes(field::SCRATCH).add(from), to - from)
        };
        let (mut offset, mut held, mut kept) = (0, 0, 0);
        loop {
            // SAFETY: the kernel writes at most to the end of the handler's memory.
            let read = unsafe {
                let to = self.bytes(field::SCRATCH).add(held).cast();
                libc::pread(maps, to, SCRATCH_BYTES - held, offset)
            };
            let Ok(length @ 1..) = usize::try_from(read) else { return };
            offset += read as i64;
            let filled = held + length;
            let mut start = 0;
            while let Some(end) = scratch(start, filled).iter().position(|byte| *byte == b'\n') {
                let end = start + end + 1;
                let line = scratch(start, end);
                if found.needs(&line[..line.len() - 1]) && kept + line.len() <= MAPS_BYTES {
                    // SAFETY: there is room, as was checked, and the two do not overlap.
                    unsafe {
                        let to = self.bytes(field::MAPS).add(kept);
                        to.copy_from_nonoverlapping(line.as_ptr(), line.len());
                    }
                    kept += line.len();
                    self.set(field::MAPS_LENGTH, kept as u64);
                }
                start = end;
            }
            held = filled - start;
            if held == SCRATCH_BYTES {
                // No path is that long.
                return;
            }
            // SAFETY: both ranges lie in the handler's memory.
            unsafe {
                let memory = self.bytes(field::SCRATCH);
                memory.add(start).copy_to(memory, held);
            }
        }
    }

    /// Writes the message, cut to the room for it.
    ///
    /// # Safety
    /// `length` bytes from `message` on can be read.
    pub(super) unsafe fn set_message(self, message: *const u8, length: usize) {
        let length = length.min(MESSAGE_BYTES);
        // SAFETY: the caller says so, and the record has room.
        unsafe { self.bytes(field::MESSAGE).copy_from_nonoverlapping(message, length) };
        self.set(field::MESSAGE_LENGTH, length as u64);
    }

    pub(super) fn has_message(self) -> bool {
        self.get(field::MESSAGE_LENGTH) != 0
    }

    pub(super) fn get(self, field: usize) -> u64 {
        self.0[field].load(Ordering::Relaxed)
    }

    pub(super) fn set(self, field: usize, value: u64) {
        self.0[field].store(value, Ordering::Relaxed);
    }

    pub(super) fn set_int(self, field: usize, value: c_int) {
        self.set(field, u64::from(value.cast_unsigned()));
    }

    pub(super) fn publish(self, phase: u64) {
        self.0[field::PHASE].store(phase, Ordering::Release);
    }

    /// Returns the memory of a field.
    fn bytes(self, field: usize) -> *mut u8 {
        self.0[field..].as_ptr().cast::<u8>().cast_mut()
    }
}

/// Returns the number of the system call for which SIGSYS was sent.
fn system_call(info: &siginfo_t) -> c_int {
    // The kernel's structure: three numbers, padding, the address of the call, its number.
    const AT: usize = 24;
    let info: *const c_void = std::ptr::from_ref(info).cast();
    // SAFETY: the structure has 128 bytes, all of which the kernel has written.
    unsafe { info.byte_add(AT).cast::<c_int>().read() }
}
