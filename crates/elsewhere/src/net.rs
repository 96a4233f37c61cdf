//! `rustix::net`.

use std::io::{IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::io::{Errno, Result};

flags! {
    RecvFlags: CMSG_CLOEXEC DONTWAIT PEEK TRUNC;
    ReturnFlags: CTRUNC TRUNC;
    SendFlags: DONTWAIT NOSIGNAL;
    SocketFlags: CLOEXEC NONBLOCK;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressFamily {
    UNIX,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketType {
    SEQPACKET,
    STREAM,
}

#[derive(Debug, Clone, Copy)]
pub enum Shutdown {
    Both,
    Write,
}

#[derive(Debug, Clone)]
pub struct SocketAddrUnix(());

impl SocketAddrUnix {
    pub fn new<P>(_: P) -> Result<Self> {
        Err(Errno::NOSYS)
    }

    pub fn new_abstract_name(_: &[u8]) -> Result<Self> {
        Err(Errno::NOSYS)
    }
}

refused! {
    accept_with<F>(F, SocketFlags) -> OwnedFd;
    bind<F>(F, &SocketAddrUnix);
    connect<F>(F, &SocketAddrUnix);
    listen<F>(F, i32);
    recvmsg<F>(F, &mut [IoSliceMut<'_>], &mut RecvAncillaryBuffer<'_>, RecvFlags) -> RecvMsg;
    send<F>(F, &[u8], SendFlags) -> usize;
    sendmsg<F>(F, &[IoSlice<'_>], &mut SendAncillaryBuffer<'_>, SendFlags) -> usize;
    shutdown<F>(F, Shutdown);
    socket_with(AddressFamily, SocketType, SocketFlags, Option<()>) -> OwnedFd;
    socketpair(AddressFamily, SocketType, SocketFlags, Option<()>) -> (OwnedFd, OwnedFd);
}

#[derive(Debug)]
pub struct RecvMsg {
    pub bytes: usize,
    pub flags: ReturnFlags,
}

#[derive(Debug, Default)]
pub struct RecvAncillaryBuffer<'a>(PhantomData<&'a mut ()>);

impl<'a> RecvAncillaryBuffer<'a> {
    pub fn new(_: &'a mut [MaybeUninit<u8>]) -> Self {
        Self(PhantomData)
    }

    pub fn drain(&mut self) -> std::iter::Empty<RecvAncillaryMessage> {
        std::iter::empty()
    }
}

#[derive(Debug)]
#[non_exhaustive]
pub enum RecvAncillaryMessage {
    ScmRights(std::vec::IntoIter<OwnedFd>),
}

#[derive(Debug)]
pub struct SendAncillaryBuffer<'a>(PhantomData<&'a ()>);

impl<'a> SendAncillaryBuffer<'a> {
    pub fn new(_: &'a mut [MaybeUninit<u8>]) -> Self {
        Self(PhantomData)
    }

    pub fn push(&mut self, _: SendAncillaryMessage<'a>) -> bool {
        false
    }
}

#[derive(Debug)]
pub enum SendAncillaryMessage<'a> {
    ScmRights(&'a [BorrowedFd<'a>]),
}

/// Stands in for a number of bytes.
#[macro_export]
macro_rules! cmsg_space {
    ($($kind:tt)*) => {
        1
    };
}

pub mod sockopt {
    //! `rustix::net::sockopt`.

    use super::{AddressFamily, SocketType};

    #[derive(Debug, Clone, Copy)]
    pub enum Timeout {
        Send,
    }

    refused! {
        set_socket_passcred<F>(F, bool);
        set_socket_timeout<F>(F, Timeout, Option<std::time::Duration>);
        socket_domain<F>(F) -> AddressFamily;
        socket_type<F>(F) -> SocketType;
    }
}
