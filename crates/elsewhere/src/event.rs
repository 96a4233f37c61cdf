//! `rustix::event`.

use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

pub use crate::time::Timespec;

flags! {
    EventfdFlags: CLOEXEC NONBLOCK;
    PollFlags: IN OUT ERR HUP;
}

refused! {
    eventfd(u32, EventfdFlags) -> OwnedFd;
    poll(&mut [PollFd<'_>], Option<&Timespec>) -> usize;
}

#[derive(Debug, Clone)]
pub struct PollFd<'a>(PhantomData<BorrowedFd<'a>>);

impl<'a> PollFd<'a> {
    pub fn new<F: AsFd>(_: &'a F, _: PollFlags) -> Self {
        Self(PhantomData)
    }

    pub fn from_borrowed_fd(_: BorrowedFd<'a>, _: PollFlags) -> Self {
        Self(PhantomData)
    }

    pub fn revents(&self) -> PollFlags {
        PollFlags::empty()
    }
}

pub mod epoll {
    //! `rustix::event::epoll`.

    use std::os::fd::OwnedFd;

    use super::Timespec;

    flags! {
        CreateFlags: CLOEXEC;
        EventFlags: IN OUT ET;
    }

    #[derive(Debug, Clone, Copy)]
    pub struct EventData(u64);

    impl EventData {
        pub const fn new_u64(value: u64) -> Self {
            Self(value)
        }

        pub const fn u64(self) -> u64 {
            self.0
        }
    }

    #[derive(Debug, Clone, Copy)]
    pub struct Event {
        pub flags: EventFlags,
        pub data: EventData,
    }

    refused! {
        create(CreateFlags) -> OwnedFd;
        add<E, F>(E, F, EventData, EventFlags);
        modify<E, F>(E, F, EventData, EventFlags);
        delete<E, F>(E, F);
    }

    pub fn wait<E, B: crate::buffer::Buffer<Event>>(
        _: E,
        _: B,
        _: Option<&Timespec>,
    ) -> crate::io::Result<B::Output> {
        Err(crate::io::Errno::NOSYS)
    }
}
