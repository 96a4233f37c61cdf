//! Prepares a process to record its crashes.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::fs::{Mode, OFlags, fstat, open};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use super::area::{RECORD, WORDS};
use super::handler::{
    ControlSocket, INSTALLED, Installed, installed, is_crashing, on_crash, on_sample,
};
use super::record::Record;
use crate::segment::Segment;
use crate::syscall::checked;

/// Packets that the handlers send through the control socket.
#[derive(Debug, Clone, Default)]
pub struct Notices {
    /// The record of a crash is complete, and the process is about to end.
    pub crashed: Vec<u8>,
    /// The sample that the host asked for is complete.
    pub sampled: Vec<u8>,
}

type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void);

const CRASHES: [c_int; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGABRT,
    libc::SIGSYS,
    libc::SIGTRAP,
];

/// The size of the alternate stack of the main thread. That of the standard library leaves only
/// 4 KiB on a processor with large registers.
const STACK: usize = 64 << 10;

/// The part of [`Installed`] that every copy of the process shares.
#[derive(Clone, Copy)]
struct Handlers {
    overflow_handler: Option<libc::sigaction>,
    abort_message: usize,
}

static HANDLERS: OnceLock<Handlers> = OnceLock::new();

/// Installs the handlers for the copies of this process, so that [`install`] has little left to do
/// there. Until then, the signals end the process without a record. Call it on the main thread.
///
/// # Errors
/// If the system has no memory.
pub fn prepare() -> io::Result<()> {
    handlers().map(|_| ())
}

fn handlers() -> io::Result<Handlers> {
    if let Some(handlers) = HANDLERS.get() {
        return Ok(*handlers);
    }
    use_larger_stack()?;
    let overflow_handler = overflow_handler();
    for signal in CRASHES {
        let action = action(signal);
        let is_std = overflow_handler.is_some_and(|handler| is_same(&handler, &action));
        if is_std || action.sa_sigaction == libc::SIG_DFL {
            set(signal, on_crash, 0);
        }
    }
    if action(libc::SIGURG).sa_sigaction == libc::SIG_DFL {
        set(libc::SIGURG, on_sample, libc::SA_RESTART);
    }
    let handlers = Handlers { overflow_handler, abort_message: abort_message() };
    Ok(*HANDLERS.get_or_init(|| handlers))
}

/// Installs the handlers, once per process. They write to the `WORDS` words of the segment from
/// `offset` on. Call it on the main thread, before there are others.
///
/// # Errors
/// If the system has no `/proc`, or no memory.
pub fn install(
    segment: &Arc<Segment>,
    offset: usize,
    control: BorrowedFd<'_>,
    notices: Notices,
) -> io::Result<()> {
    let maps = open("/proc/self/maps", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let status = fstat(control)?;
    let control = ControlSocket {
        descriptor: control.as_fd().as_raw_fd(),
        identity: (status.st_dev, status.st_ino),
    };
    // The handlers may run as long as the process does.
    let segment: &'static Arc<Segment> = Box::leak(Box::new(Arc::clone(segment)));
    let words: &'static [AtomicU64] = segment
        .words()
        .get(offset..)
        .and_then(|words| words.get(..WORDS))
        .ok_or(io::ErrorKind::InvalidInput)?;
    // Those that are there already record nothing before the rest is.
    let Handlers { overflow_handler, abort_message } = handlers()?;
    let installed = Installed {
        // SAFETY: it only asks for a number.
        process: AtomicI32::new(unsafe { libc::getpid() }),
        crash: Record(&words[..RECORD]),
        sample: Record(&words[RECORD..]),
        maps: AtomicI32::new(maps.into_raw_fd()),
        control,
        notices,
        abort_message,
        overflow_handler,
        crashing: AtomicI32::new(0),
        may_query: AtomicBool::new(true),
    };
    INSTALLED.store(Box::into_raw(Box::new(installed)), Ordering::Release);
    Ok(())
}

/// Makes the handlers do without a system call that few sandboxes allow. They take longer then.
pub fn expect_a_sandbox() {
    if let Some(installed) = installed() {
        installed.may_query.store(false, Ordering::Relaxed);
    }
}

/// Keeps the message of a panic that is about to abort the process.
pub fn note_message(message: &str) {
    if let Some(installed) = installed().filter(|installed| !is_crashing(installed)) {
        // SAFETY: the bytes are those of a string.
        unsafe { installed.crash.set_message(message.as_ptr(), message.len()) };
    }
}

/// Returns the handler with which the standard library recognizes overflows: it is the same for
/// both signals of memory, and there are no others.
fn overflow_handler() -> Option<libc::sigaction> {
    let [memory, bus, abort, fault] =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT, libc::SIGFPE].map(action);
    let is_default = |action: &libc::sigaction| action.sa_sigaction == libc::SIG_DFL;
    let found = !is_default(&memory)
        && memory.sa_sigaction != libc::SIG_IGN
        && is_same(&memory, &bus)
        && is_default(&abort)
        && is_default(&fault);
    found.then_some(memory)
}

fn is_same(one: &libc::sigaction, other: &libc::sigaction) -> bool {
    one.sa_sigaction == other.sa_sigaction && one.sa_flags == other.sa_flags
}

fn action(signal: c_int) -> libc::sigaction {
    // SAFETY: an action of zeros is valid, and the signals are.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        libc::sigaction(signal, ptr::null(), &raw mut action);
        action
    }
}

fn set(signal: c_int, handler: Handler, flags: c_int) {
    // SAFETY: the handler has the type for SA_SIGINFO, makes only system calls, and touches only
    // memory that is never freed.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | flags;
        libc::sigaction(signal, &raw const action, ptr::null_mut());
    }
}

/// Gives this thread an alternate stack that is large enough, unless it has one. It is never freed.
fn use_larger_stack() -> io::Result<()> {
    // SAFETY: a structure of zeros is valid, and the call fills it.
    let present = unsafe {
        let mut present: libc::stack_t = MaybeUninit::zeroed().assume_init();
        libc::sigaltstack(ptr::null(), &raw mut present);
        present
    };
    if present.ss_flags & libc::SS_DISABLE == 0 && present.ss_size >= STACK {
        return Ok(());
    }
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
    let memory = unsafe { mmap_anonymous(ptr::null_mut(), STACK, access, MapFlags::PRIVATE) }?;
    let stack = libc::stack_t { ss_sp: memory, ss_flags: 0, ss_size: STACK };
    // SAFETY: the memory is used for nothing else, and is never unmapped.
    Ok(checked(unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) }).map(drop)?)
}

/// Returns the address of glibc's pointer to the message of an abort, which debuggers read too.
fn abort_message() -> usize {
    // SAFETY: the name ends with a zero.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__abort_msg".as_ptr()) }.addr()
}
