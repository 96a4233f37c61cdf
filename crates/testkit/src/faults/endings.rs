//! Tasks that end their worker or stop it.

use brigade_sys::exit_handler;
use brigade_testkit_sys::misdeeds;
use rustix::process::{Signal, getpid, kill_process};

/// Calls `abort`, which ends the process by SIGABRT.
pub fn aborts((): ()) {
    std::process::abort()
}

/// Calls `exit` in the middle of the task.
pub fn exits(code: i32) {
    std::process::exit(code)
}

/// Recurses until the stack is used up. The runtime then aborts the process.
pub fn overflows_the_stack((): ()) -> u64 {
    descend(1)
}

/// Kills its own process by SIGKILL, as the kernel does when memory runs out.
pub fn kills_itself((): ()) {
    hit_myself(Signal::KILL);
}

/// Ends its own process by SIGTERM.
pub fn terminates_itself((): ()) {
    hit_myself(Signal::TERM);
}

/// Stops its process by SIGSTOP. Returns once somebody continues the process.
pub fn stops_itself((): ()) {
    hit_myself(Signal::STOP);
}

/// Closes every descriptor of the process, including those of the library, and returns.
pub fn closes_all_descriptors((): ()) {
    misdeeds::close_all();
}

/// Makes its worker hang while the process exits by itself.
pub fn hangs_at_exit((): ()) {
    extern "C" fn hang() {
        super::hangs(());
    }
    // With musl, `exit` drops no values of threads.
    exit_handler::at_exit(hang);
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
    // Stack memory that is used after the call, so that no optimizer turns the recursion into a
    // loop.
    let ballast = std::hint::black_box([depth; 64]);
    descend(depth + 1) + ballast[usize::try_from(depth).unwrap_or(0) % 64]
}
