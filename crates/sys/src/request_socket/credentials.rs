//! Asks the kernel about the other end of a socket.
//!
//! rustix has these calls too, but holds pids in a type without zero. Zero is the pid of a process
//! that has no number in our pid namespace, for example one outside our container.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::Request;
use crate::syscall::{checked, last_errno};

/// Returns the process that has connected, 0 if it has no number here, and its user.
pub(super) fn of_peer(socket: &OwnedFd) -> io::Result<(u32, u32)> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    option(socket, libc::SO_PEERCRED, &mut credentials)?;
    Ok((credentials.pid.unsigned_abs(), credentials.uid))
}

/// Returns a pidfd of the process that has connected. `Unsupported` before Linux 6.5.
pub(super) fn pidfd_of_peer(socket: &OwnedFd) -> io::Result<OwnedFd> {
    pidfd(socket, libc::SO_PEERPIDFD)
}

fn pidfd(socket: &OwnedFd, name: libc::c_int) -> io::Result<OwnedFd> {
    let mut pidfd: libc::c_int = -1;
    option(socket, name, &mut pidfd).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NOPROTOOPT) => io::Error::new(
            io::ErrorKind::Unsupported,
            "Linux 6.5 or later is needed to identify processes that connect",
        ),
        _ => error,
    })?;
    if pidfd < 0 {
        return Err(Errno::BADF.into());
    }
    // SAFETY: the kernel has just created this descriptor for us, close-on-exec, and nobody else
    // knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(pidfd) })
}

/// Types of plain numbers, for which any bytes are valid.
trait PlainData: Copy {}
impl PlainData for libc::ucred {}
impl PlainData for libc::c_int {}

fn option<T: PlainData>(socket: &OwnedFd, name: libc::c_int, value: &mut T) -> io::Result<()> {
    let mut length = fitting(size_of::<T>());
    // SAFETY: both pointers are to live values, and the kernel writes at most `length` bytes, any
    // of which form a valid `T`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            std::ptr::from_mut(value).cast(),
            &raw mut length,
        )
    };
    Ok(checked(result).map(drop)?)
}

/// Takes one packet, and the number of its sender.
pub(super) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Result<Request, Errno> {
    // Room for the sender and nothing else: the kernel closes descriptors that somebody sends
    // along.
    let mut control: ControlBuffer = [0; 4];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: the structure consists of plain numbers and pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = fitting(size_of::<ControlBuffer>());
    // SAFETY: all pointers in `message` are to live values of the lengths given there.
    let received =
        unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    let length = usize::try_from(received).map_err(|_| last_errno())?;
    if message.msg_flags & libc::MSG_TRUNC != 0 {
        return Ok(Request::TooLarge);
    }
    if length == 0 {
        return Ok(Request::Closed);
    }
    Ok(Request::Packet { length, sender: sender(&message) })
}

/// Enough words for a header and credentials, aligned for both.
type ControlBuffer = [u64; 4];

fn sender(message: &libc::msghdr) -> u32 {
    // SAFETY: the kernel has filled in the message and its control data, both of which still exist.
    let header = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() };
    let Some(header) = header else { return 0 };
    let enough = size_of::<libc::cmsghdr>() + size_of::<libc::ucred>();
    let is_sender =
        header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_CREDENTIALS;
    if !is_sender || header.cmsg_len < fitting(enough) {
        return 0;
    }
    // SAFETY: after a header of this kind and length the kernel has written credentials, inside the
    // control data.
    let credentials = unsafe { libc::CMSG_DATA(header).cast::<libc::ucred>().read_unaligned() };
    credentials.pid.unsigned_abs()
}

/// Returns a number of bytes as the type that the C library uses for it, which differs from one to
/// another.
#[expect(clippy::expect_used, reason = "control data is a few bytes long")]
fn fitting<N: TryFrom<usize>>(bytes: usize) -> N {
    N::try_from(bytes).ok().expect("a few bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_socket::pair;

    #[test]
    fn a_kernel_without_the_option_is_named_as_the_cause() {
        let (socket, _other) = pair().expect("descriptors");
        pidfd(&socket, libc::SO_PEERPIDFD).expect("an option of this kernel");
        // As a kernel before 6.5 answers to `SO_PEERPIDFD`.
        let error = pidfd(&socket, 0x7fff).expect_err("no option of any kernel");
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        assert!(error.to_string().contains("Linux 6.5"), "{error}");
    }
}
