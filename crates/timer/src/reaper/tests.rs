//! The reaper and real families: whom it notes, and for how long.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use brigade_sys::clock::Monotonic;
use brigade_sys::process::Signal;

use super::*;
use crate::scope::Scope;

/// A shell with two children, of which one has left its group and has a child of its own.
fn family() -> (Child, ForeignProcess) {
    let script = "sleep 600 & setsid sh -c 'sleep 600 & echo up; wait' & wait";
    let mut shell =
        Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().expect("a shell");
    let output = shell.stdout.as_mut().expect("a pipe");
    output.read_exact(&mut [0; 3]).expect("it is up");
    let process = ForeignProcess::open(shell.id()).expect("it is there");
    (shell, process)
}

fn timer() -> ExpiredTimer {
    ExpiredTimer { scope: Scope::from("work"), deadline: Monotonic::from_nanos(1), ladder: None }
}

/// Its first signal changes nothing.
fn reaper() -> SignalReaper {
    let ladder = Ladder::kill().after(Signal::Continue, Duration::ZERO);
    SignalReaper::new(ladder.after(Signal::Continue, Duration::ZERO))
}

fn reap(reaper: &mut SignalReaper, process: &ForeignProcess, step: u32) -> Reap {
    let timers = [timer()];
    reaper.reap(&Expiry { process, timers: &timers, step }).expect("our child")
}

#[test]
fn however_often_a_step_is_tried_each_descendant_is_noted_once_and_killed_with_its_worker() {
    let (mut shell, process) = family();
    let mut reaper = reaper();
    for step in [0, 0, 0, 1, 1] {
        assert_eq!(reap(&mut reaper, &process, step), Reap::Again(Duration::ZERO));
        let noted = &reaper.descendants[&shell.id()];
        assert_eq!(noted.len(), 3, "{noted:?}");
    }
    let Reap::Gone(swept) = reap(&mut reaper, &process, 2) else { panic!("it is killed") };
    assert_eq!(swept.killed.len(), 3, "{swept:?}");
    assert!(reaper.descendants.is_empty());
    shell.wait().expect("our child");
}

#[test]
fn a_worker_that_ends_on_its_ladder_leaves_no_note_and_no_descendant() {
    let (mut shell, process) = family();
    let mut reaper = reaper();
    assert_eq!(reap(&mut reaper, &process, 0), Reap::Again(Duration::ZERO));
    shell.kill().expect("our child");
    shell.wait().expect("our child");
    let swept = reaper.clean_up(&process);
    assert_eq!(swept.killed.len(), 3, "{swept:?}");
    assert!(reaper.descendants.is_empty());
    assert_eq!(reaper.clean_up(&process), Swept::default());
}
