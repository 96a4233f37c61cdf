//! Tasks that end their worker, or bring it to a halt.

use brigade_sys::misdeeds;
use rustix::process::{Signal, getpid, kill_process};

/// Calls `abort`: dies by SIGABRT.
pub fn aborts((): ()) {
    std::process::abort()
}

/// Calls `exit` in the middle of the task.
pub fn exits(code: i32) {
    std::process::exit(code)
}

/// Recurses until the stack is used up; the runtime then aborts the process.
pub fn overflows_the_stack((): ()) -> u64 {
    descend(1)
}

/// Dies by SIGKILL, as a process that the kernel chose when memory ran out.
pub fn kills_itself((): ()) {
    hit_myself(Signal::KILL);
}

/// Dies by SIGTERM.
pub fn terminates_itself((): ()) {
    hit_myself(Signal::TERM);
}

/// Stops by SIGSTOP; goes on and returns when somebody continues the process.
pub fn stops_itself((): ()) {
    hit_myself(Signal::STOP);
}

/// Closes every descriptor of the process, those of the library included, and returns.
pub fn closes_all_descriptors((): ()) {
    misdeeds::close_all();
}

/// Sees to it that its worker hangs when it leaves: when the process exits by itself.
pub fn hangs_at_exit((): ()) {
    thread_local!(static LEFT_BEHIND: HangsWhenDropped = const { HangsWhenDropped });
    LEFT_BEHIND.with(|_| {});
}

struct HangsWhenDropped;

impl Drop for HangsWhenDropped {
    fn drop(&mut self) {
        super::hangs(());
    }
}

fn hit_myself(signal: Signal) {
    kill_process(getpid(), signal).expect("a process may signal itself");
}

#[expect(unconditional_recursion, reason = "that is what this function is for")]
fn descend(depth: u64) -> u64 {
    // Something on the stack that is used after the call, so that no optimiser turns the recursion into a loop.
    let ballast = std::hint::black_box([depth; 64]);
    descend(depth + 1) + ballast[usize::try_from(depth).unwrap_or(0) % 64]
}
