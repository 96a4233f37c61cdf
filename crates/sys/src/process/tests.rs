//! Tests processes that end, are stopped, leave children or were reaped by somebody else.

use super::*;
use crate::clock::{Monotonic, now};
use crate::descriptors::output_pipe;
use crate::fork::tests::in_a_copy;
use crate::wait::wait_readable;
use brigade_testkit_core::{BOUND, wait_until};
use rustix::io::read;
use rustix::process::{WaitOptions, getpgid, waitpid};
use std::thread;
use std::time::Duration;

fn shell(script: &str) -> Process {
    Process::spawn(Command::new("sh").args(["-c", script])).unwrap()
}

/// Starts a shell whose descendants all hold the pipe: it hangs up when the last of them is gone.
fn shell_with_pipe(script: &str) -> (Process, OwnedFd) {
    let (reader, writer) = output_pipe().unwrap();
    let process = Process::spawn(Command::new("sh").args(["-c", script]).stdout(writer)).unwrap();
    (process, reader)
}

fn deadline() -> Monotonic {
    now().saturating_add(Duration::from_secs(10))
}

/// Returns the next bytes of the pipe; empty after all possible writers are gone.
fn next_bytes(reader: &OwnedFd) -> Vec<u8> {
    assert_eq!(
        wait_readable(&[reader.as_fd()], Some(deadline())).unwrap(),
        [true],
        "the pipe is silent until the deadline"
    );
    let mut buffer = vec![0; 64];
    let count = read(reader, &mut buffer).unwrap();
    buffer.truncate(count);
    buffer
}

#[test]
fn an_exit_code_is_reported_and_remembered() {
    let process = shell("exit 3");
    assert_eq!(process.reap().unwrap(), Exit::Code(3));
    assert_eq!(process.reap().unwrap(), Exit::Code(3));
    assert_eq!(process.try_reap().unwrap(), Some(Exit::Code(3)));
}

#[test]
fn a_signal_is_reported() {
    let process = shell("kill -SEGV $$");
    assert_eq!(process.reap().unwrap(), Exit::Signal(libc::SIGSEGV));
}

#[test]
fn a_running_process_is_not_reaped() {
    let process = shell("sleep 60");
    assert_eq!(process.try_reap().unwrap(), None);
}

#[test]
fn the_pidfd_becomes_readable_at_the_end() {
    let process = shell("sleep 60");
    assert_eq!(wait_readable(&[process.pidfd()], Some(now())).unwrap(), [false]);
    process.signal(Signal::Terminate).unwrap();
    assert_eq!(wait_readable(&[process.pidfd()], Some(deadline())).unwrap(), [true]);
    assert_eq!(process.try_reap().unwrap(), Some(Exit::Signal(libc::SIGTERM)));
    assert_eq!(wait_readable(&[process.pidfd()], Some(now())).unwrap(), [true]);
}

#[test]
fn each_process_leads_its_own_group() {
    let process = shell("sleep 60");
    assert_eq!(getpgid(Some(process.pid)).unwrap(), process.pid);
}

#[test]
fn a_signal_to_the_group_reaches_the_children() {
    let (process, reader) = shell_with_pipe("sleep 60 & echo started; wait");
    assert_eq!(next_bytes(&reader), b"started\n");
    process.signal_group(Signal::Kill).unwrap();
    assert_eq!(next_bytes(&reader), b"");
    assert_eq!(process.reap().unwrap(), Exit::Signal(libc::SIGKILL));
}

#[test]
fn reaping_kills_the_rest_of_the_group() {
    let (process, reader) = shell_with_pipe("sleep 60 & exit 3");
    assert_eq!(process.reap().unwrap(), Exit::Code(3));
    assert_eq!(next_bytes(&reader), b"");
}

#[test]
fn dropping_kills_and_reaps_the_group() {
    let (process, reader) = shell_with_pipe("sleep 60 & sleep 60");
    let pid = process.pid;
    drop(process);
    assert_eq!(next_bytes(&reader), b"");
    // No child with that number is left, not even a zombie.
    assert_eq!(waitpid(Some(pid), WaitOptions::NOHANG).unwrap_err(), Errno::CHILD);
}

#[test]
fn signals_after_the_end_are_not_errors() {
    let process = shell("exit 0");
    wait_readable(&[process.pidfd()], Some(deadline())).unwrap();
    process.signal(Signal::Kill).unwrap();
    process.signal_group(Signal::Kill).unwrap();
    assert_eq!(process.reap().unwrap(), Exit::Code(0));
    process.signal(Signal::Kill).unwrap();
    process.signal_group(Signal::Kill).unwrap();
}

#[test]
fn a_process_reaped_elsewhere_is_never_signalled_by_number() {
    let process = shell("exit 0");
    waitpid(Some(process.pid), WaitOptions::empty()).unwrap();
    process.signal_group(Signal::Kill).unwrap();
    assert!(matches!(*process.state(), State::Lost));
    assert_eq!(process.try_reap().unwrap_err().raw_os_error(), Some(libc::ECHILD));
    assert_eq!(process.reap().unwrap_err().raw_os_error(), Some(libc::ECHILD));
}

#[test]
fn a_stopped_process_is_seen_continues_and_can_be_killed() {
    // Without a shell in between: a stop that hits the child of a `vfork` before its `exec` leaves
    // the shell waiting in the kernel, where it is not stopped.
    let process = Process::spawn(Command::new("sleep").arg("60")).unwrap();
    assert!(!process.is_stopped());
    process.signal_group(Signal::Stop).unwrap();
    wait_until("the process stops", BOUND, || process.is_stopped());
    assert_eq!(process.try_reap().unwrap(), None);
    process.signal_group(Signal::Continue).unwrap();
    wait_until("the process continues", BOUND, || !process.is_stopped());
    process.signal_group(Signal::Stop).unwrap();
    wait_until("the process stops", BOUND, || process.is_stopped());
    process.signal_group(Signal::Kill).unwrap();
    assert_eq!(process.reap().unwrap(), Exit::Signal(libc::SIGKILL));
    assert!(!process.is_stopped());
}

#[test]
fn a_waiting_thread_does_not_hold_up_a_kill() {
    let process = shell("sleep 60");
    thread::scope(|scope| {
        let waiting = [(); 3].map(|()| scope.spawn(|| process.reap().unwrap()));
        process.signal_group(Signal::Kill).unwrap();
        for thread in waiting {
            assert_eq!(thread.join().unwrap(), Exit::Signal(libc::SIGKILL));
        }
    });
}

#[test]
fn signals_and_reaps_from_several_threads_agree() {
    for _ in 0..20 {
        let process = shell("exit 7");
        thread::scope(|scope| {
            let signals = scope.spawn(|| {
                while process.try_reap().unwrap().is_none() {
                    process.signal_group(Signal::Continue).unwrap();
                    process.signal(Signal::Continue).unwrap();
                }
            });
            assert_eq!(process.reap().unwrap(), Exit::Code(7));
            signals.join().unwrap();
        });
    }
}

#[test]
fn a_missing_program_is_an_error() {
    let error = Process::spawn(&mut Command::new("/nowhere/brigade")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_process_with_children_is_killed_with_them() {
    let (process, reader) = shell_with_pipe("sleep 60 & echo; wait");
    assert_eq!(next_bytes(&reader), b"\n");
    assert!(!process.kill_if_alone().unwrap());
    wait_until("the process stops", BOUND, || process.is_stopped());
    let swept = process.kill_tree().unwrap();
    assert_eq!(swept.killed.len(), 1);
    assert_eq!(next_bytes(&reader), b"", "nobody is left");
    assert_eq!(process.reap().unwrap(), Exit::Signal(9));
}

#[test]
fn a_process_without_children_is_killed_at_once() {
    let process = Process::spawn(Command::new("sleep").arg("60")).unwrap();
    assert!(process.kill_if_alone().unwrap());
    assert_eq!(process.reap().unwrap(), Exit::Signal(9));
    assert!(process.kill_if_alone().is_ok(), "a process that is gone needs no kill");
}

#[test]
fn a_drop_in_a_copy_of_this_process_ends_nothing() {
    let mut process = Some(shell("sleep 60"));
    assert!(in_a_copy(|| {
        drop(process.take());
        true
    }));
    let process = process.expect("the original keeps it");
    assert!(!wait_readable(&[process.pidfd()], Some(now())).unwrap()[0], "it was killed");
}
