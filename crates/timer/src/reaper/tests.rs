//! The reaper with real process families: which descendants it records, and for how long.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use brigade_sys::clock::Monotonic;
use brigade_sys::process::Signal;

use super::*;
use crate::scope::Scope;

/// Starts a shell with two children, one of which has left its group and has a child of its own.
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
    ExpiredTimer {
        scope: Scope::from("work"),
        deadline: Monotonic::from_nanos(1),
        escalation: None,
    }
}

/// Returns a reaper whose first signals have no effect.
fn reaper() -> SignalReaper {
    let escalation = Escalation::kill().after(Signal::Continue, Duration::ZERO);
    SignalReaper::new(escalation.after(Signal::Continue, Duration::ZERO))
}

fn reap(reaper: &mut SignalReaper, process: &ForeignProcess, step: u32) -> Reap {
    let timers = [timer()];
    reaper.reap(&Expiry { process, timers: &timers, step }).expect("our child")
}

#[test]
fn repeated_steps_record_each_descendant_once() {
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
fn a_process_that_exits_during_escalation_leaves_nothing() {
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
