//! `rustix::event`.

use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::io::Result;
use crate::kernel::{self, Watched};
pub use crate::time::Timespec;

flags! {
    EventfdFlags: CLOEXEC NONBLOCK;
    PollFlags: IN OUT ERR HUP;
}

pub fn eventfd(count: u32, _: EventfdFlags) -> Result<OwnedFd> {
    kernel::create_counter(count)
}

pub fn poll(polled: &mut [PollFd<'_>], timeout: Option<&Timespec>) -> Result<usize> {
    let watched: Vec<Watched> =
        (0..).zip(&*polled).map(|(token, it)| Watched { number: it.number, token }).collect();
    let ready = kernel::wait_for_counters(&watched, timeout.copied().map(Duration::from))?;
    for (token, it) in (0..).zip(polled) {
        it.is_ready = ready.iter().any(|ready| ready.token == token);
    }
    Ok(ready.len())
}

#[derive(Debug, Clone)]
pub struct PollFd<'a> {
    number: i32,
    is_ready: bool,
    descriptor: PhantomData<BorrowedFd<'a>>,
}

impl<'a> PollFd<'a> {
    pub fn new<F: AsFd>(descriptor: &'a F, flags: PollFlags) -> Self {
        Self::from_borrowed_fd(descriptor.as_fd(), flags)
    }

    pub fn from_borrowed_fd(descriptor: BorrowedFd<'a>, _: PollFlags) -> Self {
        Self { number: descriptor.as_raw_fd(), is_ready: false, descriptor: PhantomData }
    }

    pub fn revents(&self) -> PollFlags {
        if self.is_ready { PollFlags::IN } else { PollFlags::empty() }
    }
}

pub mod epoll {
    //! `rustix::event::epoll`.

    use std::os::fd::{AsFd, OwnedFd};
    use std::time::Duration;

    use super::Timespec;
    use crate::buffer::Buffer;
    use crate::io::Result;
    use crate::kernel;

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
        modify<E, F>(E, F, EventData, EventFlags);
    }

    pub fn create(_: CreateFlags) -> Result<OwnedFd> {
        kernel::create_set()
    }

    pub fn add(set: impl AsFd, watched: impl AsFd, data: EventData, _: EventFlags) -> Result<()> {
        kernel::watch(set, watched, data.0)
    }

    pub fn delete(set: impl AsFd, watched: impl AsFd) -> Result<()> {
        kernel::forget(set, watched)
    }

    pub fn wait<B: Buffer<Event>>(
        set: impl AsFd,
        buffer: B,
        timeout: Option<&Timespec>,
    ) -> Result<B::Output> {
        let ready = kernel::wait_for_set(set, timeout.copied().map(Duration::from))?;
        let event = |token| Event { flags: EventFlags::IN, data: EventData(token) };
        buffer.fill(ready.into_iter().map(|it| event(it.token)))
    }
}
