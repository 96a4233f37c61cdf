//! A supervisor whose owner is not a pool.

use std::any::Any;
use std::fmt;
use std::io;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use brigade_sandbox::{Groups, Limits};
use brigade_supervisor::{
    CommandLine, Connected, ProcessEnv, ProcessState, Settings, Setup, SharedMemory, StartError,
    Stdio, Supervised, Supervisor, WorkerProcess, threads,
};
use brigade_sys::clock::Monotonic;
use brigade_wire::WorkerId;
use crossbeam_channel::{Receiver, Sender, unbounded};

/// Longer than anything here takes.
const BOUND: Duration = Duration::from_secs(60);

/// Passes on why workers were not started. None is connected, because no program here is a worker.
struct Owner {
    supervisor: Supervisor,
    settings: Settings,
    failures: Sender<(WorkerId, StartError)>,
}

impl Supervised for Owner {
    fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn is_forked(&self) -> bool {
        false
    }

    fn max_workers(&self) -> usize {
        1
    }

    fn shared_memory(&self) -> Option<SharedMemory<'_>> {
        None
    }

    fn start<P>(
        &self,
        _: WorkerId,
        start: impl FnOnce(Option<usize>) -> io::Result<P>,
    ) -> io::Result<P> {
        start(None)
    }

    fn thread_began(&self) {}

    fn start_failed(&self, worker: WorkerId, error: StartError) {
        self.failures.send((worker, error)).unwrap();
    }

    fn connected(&self, process: &Arc<WorkerProcess>, _: Connected) {
        unreachable!("{process:?} is not a worker")
    }

    fn thread_panicked(&self, process: &Arc<WorkerProcess>) {
        unreachable!("{process:?}")
    }

    fn section_began(&self, worker: WorkerId, _: Monotonic) {
        unreachable!("{worker}")
    }

    fn misbehaved(&self, worker: WorkerId, problem: &str) {
        unreachable!("{worker}: {problem}")
    }

    fn crashed(&self, process: &WorkerProcess) -> bool {
        unreachable!("{process:?}")
    }

    fn gave_up_on(&self, process: &WorkerProcess) {
        unreachable!("{process:?}")
    }

    fn died(&self, process: &Arc<WorkerProcess>) {
        unreachable!("{process:?}")
    }

    fn reaped(&self, process: &WorkerProcess) {
        unreachable!("{process:?}")
    }

    fn could_not_kill(&self, process: &Arc<WorkerProcess>, error: io::Error) {
        unreachable!("{process:?}: {error}")
    }

    fn tick(&self) -> Option<Monotonic> {
        None
    }

    fn work(&self, _: Box<dyn Any + Send>) {
        unreachable!("nothing is left to the cleaner")
    }

    fn gave_up(&self, part: &str, problem: &dyn fmt::Display) {
        unreachable!("{part}: {problem}")
    }
}

/// Runs `with` while all threads of a supervisor run, whose workers are shells with this script.
fn supervise(
    script: &str,
    with: impl FnOnce(&Owner, &Receiver<(WorkerId, StartError)>),
) -> io::Result<()> {
    let (supervisor, orders, jobs) = Supervisor::new(Stdio::Null)?;
    let (failures, failed) = unbounded();
    let settings = Settings {
        pool: "test".to_owned(),
        command: Some(CommandLine::from(&*Command::new("sh").args(["-c", script]))),
        env: ProcessEnv::default(),
        events: None,
        is_pinned: false,
        copies: None,
        max_rss: None,
        version: None,
        depth: 1,
        start_timeout: BOUND,
        setup: Setup { preload: None, initializer: None, timeout: BOUND, finalizer: None },
        connector: None,
        thread: None,
        credit: 8,
        message_limit: 1 << 20,
        start: brigade_supervisor::Start::Auto,
        sandbox: None,
        limits: Limits::new(),
        groups: Groups::default(),
    };
    let owner = Arc::new(Owner { supervisor, settings, failures });
    thread::scope(|scope| {
        scope.spawn(|| threads::spawner::run(&owner, &orders));
        scope.spawn(|| threads::cleaner::run(&*owner, &jobs));
        scope.spawn(|| threads::reaper::run(&*owner));
        scope.spawn(|| threads::output::run(&*owner));
        with(&owner, &failed);
        owner.supervisor.end();
    });
    Ok(())
}

fn order(owner: &Owner, generation: u32) -> Arc<WorkerProcess> {
    let process = Arc::new(WorkerProcess::new(WorkerId { slot: 0, generation }));
    owner.supervisor.start(Arc::clone(&process));
    process
}

#[test]
fn a_program_that_ends_in_the_handshake_is_reaped_and_quoted() -> io::Result<()> {
    supervise("echo last words >&2; exit 7", |owner, failed| {
        let process = order(owner, 1);
        let (worker, error) = failed.recv_timeout(BOUND).unwrap();
        assert_eq!(worker, process.worker());
        assert!(!error.is_permanent);
        for part in ["ended before the handshake was complete", "exit code 7", "last words"] {
            assert!(error.reason.contains(part), "{error}");
        }
        assert_eq!(process.state(), ProcessState::Dead);
    })
}

#[test]
fn a_worker_killed_in_the_handshake_is_reported_once() -> io::Result<()> {
    supervise("exec sleep 600", |owner, failed| {
        let process = order(owner, 1);
        threads::cleaner::kill(owner, &process, true);
        threads::cleaner::kill(owner, &process, false);
        let (_, error) = failed.recv_timeout(BOUND).unwrap();
        let is_expected = |part: &&str| error.reason.contains(part);
        assert!(["no longer needed", "SIGKILL"].iter().any(is_expected), "{error}");
        threads::cleaner::kill(owner, &order(owner, 2), false);
        let (worker, _) = failed.recv_timeout(BOUND).unwrap();
        assert_eq!(worker.generation, 2, "one report for each worker");
    })
}
