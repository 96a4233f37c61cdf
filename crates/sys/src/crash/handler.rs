//! The signal handlers.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};

use libc::{siginfo_t, ucontext_t};

use super::area::{BEGUN, field};
use super::install::Notices;
use super::record::{MapsFile, Record};
use crate::signals::EXIT_OF_SIGNALS;

/// A second thread that crashes waits this many milliseconds for the end of the process.
const PATIENCE: c_int = 50;

/// Everything that the handlers need. Made once, and never freed.
pub(super) struct Installed {
    /// The process that was prepared, and not a copy of it, unless that [follows](follow) it.
    pub(super) process: AtomicI32,
    pub(super) crash: Record,
    pub(super) sample: Record,
    /// `/proc/self/maps`, which a process in a sandbox could not open.
    /// -1 in a copy that follows, until it needs it: the file shows the memory of the process that
    /// has opened it.
    pub(super) maps: AtomicI32,
    pub(super) control: ControlSocket,
    pub(super) notices: Notices,
    /// The address of a pointer to the message with which the C library aborts; 0 if it has none.
    pub(super) abort_message: usize,
    /// The standard library's handler, and the signals that it had.
    pub(super) overflow_handler: Option<libc::sigaction>,
    /// The thread that writes the record of the crash; 0 before.
    pub(super) crashing: AtomicI32,
    /// The kernel may be asked for single mappings. A sandbox may forbid that.
    pub(super) may_query: AtomicBool,
}

/// The control socket. A task may have closed it, and opened a file of the same number.
pub(super) struct ControlSocket {
    pub(super) descriptor: RawFd,
    pub(super) identity: (libc::dev_t, libc::ino_t),
}

pub(super) static INSTALLED: AtomicPtr<Installed> = AtomicPtr::new(ptr::null_mut());

/// Returns what was installed in this very process.
pub(super) fn installed() -> Option<&'static Installed> {
    // SAFETY: the pointer is null or that of a value which is never freed.
    let installed = unsafe { INSTALLED.load(Ordering::Acquire).as_ref() }?;
    // SAFETY: it only asks for a number.
    (unsafe { libc::getpid() } == installed.process.load(Ordering::Relaxed)).then_some(installed)
}

/// The copy that is sampled in place of this process; 0 if there is none.
static SAMPLED: AtomicI32 = AtomicI32::new(0);

/// Lets a copy of this process be sampled in its place, or this process itself if it is 0.
pub(crate) fn sample_instead(copy: libc::pid_t) {
    SAMPLED.store(copy, Ordering::Relaxed);
    if let Some(installed) = installed() {
        installed.sample.set_int(field::COPY, copy);
    }
}

/// Lets this copy record its crashes in place of the process that it is a copy of.
pub(crate) fn follow() {
    SAMPLED.store(0, Ordering::Relaxed);
    // SAFETY: as in `installed`.
    let Some(installed) = (unsafe { INSTALLED.load(Ordering::Acquire).as_ref() }) else { return };
    installed.maps.store(-1, Ordering::Relaxed);
    // SAFETY: it only asks for a number.
    installed.process.store(unsafe { libc::getpid() }, Ordering::Relaxed);
}

/// Records the crash, and lets the signal end the process.
pub(super) unsafe extern "C" fn on_crash(
    signal: c_int,
    info: *mut siginfo_t,
    context: *mut c_void,
) {
    // SAFETY: the kernel passes valid structures to handlers with SA_SIGINFO.
    let (info, context) = unsafe { (&*info, &*context.cast::<ucontext_t>()) };
    let overflow_handler =
        installed().and_then(|installed| crashed(installed, signal, info, context));
    match overflow_handler {
        // The access is repeated, and faults again.
        Some(handler) => {
            set_action(signal, handler);
        }
        None => end_by(signal, info),
    }
}

/// Returns the handler that has to see the signal, if there is one.
fn crashed(
    installed: &'static Installed,
    signal: c_int,
    info: &siginfo_t,
    context: &ucontext_t,
) -> Option<&'static libc::sigaction> {
    // SAFETY: it only asks for a number.
    let thread = unsafe { libc::gettid() };
    let record = installed.crash;
    match installed.crashing.compare_exchange(0, thread, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {}
        Err(first) if first == thread => {
            // The handler of overflows has aborted, or a handler of the program has.
            record.set_int(field::LAST_SIGNAL, signal);
            record.complete();
            installed.notify(&installed.notices.crashed);
            return None;
        }
        Err(_) => {
            wait_for_the_end();
            return None;
        }
    }
    let stack_pointer = record.begin(signal, Some(info), context);
    if signal == libc::SIGABRT && !record.has_message() {
        installed.copy_abort_message();
    }
    // Addresses have the width of a pointer.
    let address = usize::try_from(record.get(field::ADDRESS)).unwrap_or(0);
    let is_overflow = record.finish(&installed.maps(), stack_pointer, address);
    let handler = installed.overflow_handler.as_ref();
    let handler = handler.filter(|_| signal == libc::SIGSEGV && info.si_code > 0 && is_overflow);
    if handler.is_none() {
        record.complete();
        installed.notify(&installed.notices.crashed);
    }
    handler
}

/// Records where the main thread is, which runs the tasks. It goes on, or waits for the end of the
/// process if it is about to be killed: a system call that this signal has interrupted would
/// otherwise return to the task, whose value would be an error of our making.
pub(super) unsafe extern "C" fn on_sample(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
    let Some(installed) = installed() else { return };
    let copy = SAMPLED.load(Ordering::Relaxed);
    if copy != 0 {
        // SAFETY: a child that is not reaped, so the number is its own.
        unsafe { syscall!(libc::SYS_tgkill, copy, copy, libc::SIGURG) };
        return;
    }
    // SAFETY: both only ask for a number.
    if unsafe { libc::gettid() != libc::getpid() } {
        return;
    }
    // SAFETY: the kernel passes a valid structure to handlers with SA_SIGINFO.
    installed.sample(unsafe { &*context.cast::<ucontext_t>() });
    while installed.sample.get(field::IS_LAST) != 0 {
        // SAFETY: no descriptors are passed.
        unsafe { libc::poll(ptr::null_mut(), 0, -1) };
    }
}

impl Installed {
    fn sample(&self, context: &ucontext_t) {
        let record = self.sample;
        let request = record.get(field::REQUEST);
        if request == record.get(field::ANSWER) {
            return;
        }
        // SAFETY: the C library has an error number for each thread.
        let error = unsafe { libc::__errno_location() };
        // SAFETY: as above; the code that was interrupted may be about to read it.
        let before = unsafe { *error };
        let stack_pointer = record.begin(libc::SIGURG, None, context);
        record.finish(&self.maps(), stack_pointer, 0);
        record.complete();
        record.0[field::ANSWER].store(request, Ordering::Release);
        self.notify(&self.notices.sampled);
        // SAFETY: as above.
        unsafe { *error = before };
    }

    fn maps(&self) -> MapsFile {
        let may_query = self.may_query.load(Ordering::Relaxed);
        let mut descriptor = self.maps.load(Ordering::Relaxed);
        if descriptor == -1 {
            // SAFETY: the path ends with a zero.
            descriptor = unsafe {
                libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC)
            };
            self.maps.store(descriptor, Ordering::Relaxed);
        }
        MapsFile { descriptor, may_query }
    }

    /// Sends a packet to the host, unless the control socket is gone.
    fn notify(&self, packet: &[u8]) {
        let ControlSocket { descriptor, identity } = self.control;
        let mut status = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the call fills the structure or fails; the packet can be read.
        unsafe {
            if libc::fstat(descriptor, status.as_mut_ptr()) == 0 {
                let status = status.assume_init_ref();
                if (status.st_dev, status.st_ino) == identity {
                    // Of the calls that send, a worker in a sandbox needs only this one.
                    let mut part = libc::iovec {
                        iov_base: packet.as_ptr().cast_mut().cast(),
                        iov_len: packet.len(),
                    };
                    let mut message: libc::msghdr = MaybeUninit::zeroed().assume_init();
                    message.msg_iov = &raw mut part;
                    message.msg_iovlen = 1;
                    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
                    libc::sendmsg(descriptor, &raw const message, flags);
                }
            }
        }
    }

    fn copy_abort_message(&self) {
        if self.abort_message == 0 {
            return;
        }
        // SAFETY: the address is that of glibc's `__abort_msg`, a pointer to a structure with the
        // number of its bytes and the message, which ends with a zero. glibc frees it only after it
        // has set another one.
        unsafe {
            let message = *(self.abort_message as *const *const u32);
            if let Some(size) = message.as_ref() {
                let text = message.add(1).cast::<u8>();
                let most = (*size as usize).saturating_sub(size_of::<u32>()).min(1 << 10);
                let mut length = 0;
                while length < most && !matches!(*text.add(length), 0 | b'\n') {
                    length += 1;
                }
                self.crash.set_message(text, length);
            }
        }
    }
}

/// Lets the default action of the signal end the process, when the handler returns.
fn end_by(signal: c_int, info: &siginfo_t) {
    // SAFETY: an action of zeros is the default one.
    let default: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    if !set_action(signal, &default) {
        // The code must not go on.
        // SAFETY: it ends the process and has no conditions.
        unsafe { libc::_exit(EXIT_OF_SIGNALS + signal) };
    }
    let repeats = matches!(signal, libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE);
    if info.si_code <= 0
        || !repeats
        || (signal == libc::SIGBUS && info.si_code == libc::BUS_MCEERR_AO)
    {
        // It does not happen again by itself. The signal is blocked until the handler returns.
        // SAFETY: it sends a signal to this very thread.
        unsafe { syscall!(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
    }
}

/// Returns `false` if a filter of system calls forbids that.
fn set_action(signal: c_int, action: &libc::sigaction) -> bool {
    // SAFETY: the action is the default one, or was set before.
    unsafe { libc::sigaction(signal, action, ptr::null_mut()) == 0 }
}

/// Waits until the process ends, because another thread of it has crashed.
fn wait_for_the_end() {
    // The death of the process ends it, and nothing else is waited for.
    // SAFETY: no descriptors are passed.
    unsafe { libc::poll(ptr::null_mut(), 0, PATIENCE) };
}

/// Returns `true` if a thread writes the record of a crash.
pub(super) fn is_crashing(installed: &Installed) -> bool {
    installed.crashing.load(Ordering::Acquire) != 0 || installed.crash.get(field::PHASE) >= BEGUN
}
