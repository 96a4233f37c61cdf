//! `rustix::pipe`.

use std::os::fd::OwnedFd;

flags! {
    PipeFlags: CLOEXEC NONBLOCK;
    SpliceFlags: MOVE NONBLOCK;
}

refused! {
    fcntl_setpipe_size<F>(F, usize) -> usize;
    pipe() -> (OwnedFd, OwnedFd);
    pipe_with(PipeFlags) -> (OwnedFd, OwnedFd);
    splice<F, G>(F, Option<&mut u64>, G, Option<&mut u64>, usize, SpliceFlags) -> usize;
}
