//! Kills in each state.

use crate::workers::output::OutputForwarder;
use brigade_sys::process::command;

use super::*;
use crate::workers::process_env::Stdio;

fn started(process: &WorkerProcess) -> io::Result<bool> {
    let output = OutputForwarder::new(Stdio::Null)?;
    let (ends, worker_ends) = crate::workers::output::HostEnds::open(Stdio::Null, false)?;
    let mut sleep = command("sleep");
    sleep.arg("60").stderr(worker_ends.stderr);
    let sleep = Process::spawn(&mut sleep)?;
    let (control, _) = ControlSocket::pair()?;
    let writer =
        |pid| crate::workers::output::Writer { pool: "".into(), worker: process.worker(), pid };
    Ok(process.set_started(sleep, None, control, |pid| output.attach(ends, writer(pid))))
}

fn ordered() -> WorkerProcess {
    WorkerProcess::new(WorkerId { slot: 0, generation: 0 })
}

#[test]
fn a_worker_that_was_killed_before_its_start_is_not_started() -> io::Result<()> {
    let process = ordered();
    assert_eq!(process.kill()?, Killed::NotYet);
    assert!(!started(&process)?);
    assert_eq!((process.state(), process.pid()), (ProcessState::Dying, None));
    Ok(())
}

#[test]
fn a_kill_is_idempotent_and_ends_in_a_death() -> io::Result<()> {
    let process = ordered();
    assert!(started(&process)?);
    assert_eq!(process.state(), ProcessState::Started);
    process.set_connected();
    assert_eq!(process.state(), ProcessState::Connected);
    for _ in 0..2 {
        assert_eq!(process.kill()?, Killed::Sent);
        assert_eq!(process.state(), ProcessState::Dying);
    }
    let exit = process.reap()?;
    assert_eq!(exit, Exit::Signal(9));
    process.set_dead(Death::new(exit, String::new()));
    assert_eq!(process.kill()?, Killed::Sent);
    assert_eq!(process.state(), ProcessState::Dead);
    Ok(())
}

#[test]
fn a_kill_waits_for_a_link_that_is_being_opened() -> io::Result<()> {
    let process = ordered();
    assert!(started(&process)?);
    let killed = process.connect(|| process.kill()).expect("it was alive")?;
    assert_eq!(killed, Killed::NotYet);
    assert_eq!(process.reap()?, Exit::Signal(9));
    assert_eq!(process.connect(|| ()), None);
    Ok(())
}
