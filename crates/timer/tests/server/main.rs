//! A timer server and real processes: in time, late, forking, broken, killed.
//!
//! This very program is the worker as well: [`play`] runs before `main`, and what it does a variable says.

#![forbid(unsafe_code)]

mod clients;
mod deadlines;
mod forked;
mod owners;
mod recycled;
mod requests;
mod shortage;
mod strangers;

use std::env;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use brigade_sys::before_main;
use brigade_sys::clock::now;
use brigade_sys::descriptors::stderr_pipe;
use brigade_sys::process::{Exit, Process, command};
use brigade_sys::wait::wait_readable;
use brigade_testkit::{BOUND, wait_until};
use brigade_timer::{Ladder, Signal, TimerClient, TimerEvent, TimerServer, TimerServerBuilder};

before_main!(play);

/// Says what part this process plays; without it, this is the test.
const ROLE: &str = "BRIGADE_TIMER_TEST_ROLE";
/// Milliseconds, or another number that the role needs.
const NUMBER: &str = "BRIGADE_TIMER_TEST_NUMBER";
/// Finds a worker and all that it has started.
const COOKIE: &str = "BRIGADE_TIMER_TEST_COOKIE";

/// Held by tests that change what this process has configured.
static CONFIGURED: Mutex<()> = Mutex::new(());

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3600);

fn play() {
    let Ok(role) = env::var(ROLE) else { return };
    let number = env::var(NUMBER).ok().and_then(|number| number.parse().ok()).unwrap_or(0);
    let after = Duration::from_millis(number);
    let client = TimerClient::from_environment().expect("the server's address");
    match role.as_str() {
        "late" => {
            client.acquire("work", Instant::now() + after).expect("a server");
            hang();
        }
        "in time" => {
            let _guard = client.expires(LONG).expect("a server");
        }
        "nested" => {
            let outer = client.expires(after).expect("a server");
            let inner = client.expires(LONG).expect("a server");
            assert_ne!(outer.scope(), inner.scope());
            drop(inner);
            hang();
        }
        "inner" => {
            let _outer = client.expires(LONG).expect("a server");
            let _inner = client.expires(after).expect("a server");
            hang();
        }
        "panic" => {
            // A backtrace would take longer than the deadline.
            std::panic::set_hook(Box::new(|_| ()));
            let result = std::panic::catch_unwind(|| {
                let _guard = client.expires(after).expect("a server");
                panic!("the section fails");
            });
            assert!(result.is_err(), "the panic passes through");
            client.acquire("the end", Instant::now() + after).expect("a server");
            hang();
        }
        "exits" => {
            client.acquire("work", Instant::now() + after).expect("a server");
            std::process::exit(3);
        }
        "logged" => {
            let log = client.with_ladder(Ladder::log_only());
            log.acquire("logged", Instant::now()).expect("a server");
            client.acquire("work", Instant::now() + after).expect("a server");
            hang();
        }
        "family" => {
            let script = "trap '' TERM; sleep 3600 & \
                          setsid sh -c 'sleep 3600 & echo up; sleep 3600' & wait";
            let mut shell = Command::new("sh");
            let mut shell =
                shell.args(["-c", script]).stdout(Stdio::piped()).spawn().expect("a shell");
            let said = shell.stdout.as_mut().map(|stdout| stdout.read_exact(&mut [0; 3]));
            said.expect("a pipe").expect("the shell is up");
            client.acquire("work", Instant::now() + after).expect("a server");
            drop(shell);
            hang();
        }
        "requests" => {
            for number in 0_u64.. {
                client.acquire(format!("scope {number}"), Instant::now() + LONG).expect("a server");
                client.release(format!("scope {}", number / 2)).expect("a server");
            }
        }
        "ten" => {
            for number in 0..10 {
                client.acquire(format!("scope {number}"), Instant::now() + LONG).expect("a server");
            }
            for number in 0..10 {
                client.release(format!("scope {number}")).expect("a server");
            }
            hang();
        }
        "cut" => requests::send_a_part_and_die(&client, number),
        role => panic!("no role {role}"),
    }
    std::process::exit(0);
}

/// Says that all was sent, and does nothing more.
fn hang() -> ! {
    std::io::stdout().write_all(b".").expect("the test reads it");
    std::io::stdout().flush().expect("the test reads it");
    loop {
        std::thread::park();
    }
}

/// A process that plays a role.
struct Worker {
    process: Process,
    stdout: OwnedFd,
}

/// A worker of this server.
fn worker(client: &TimerClient, role: &str, number: u64) -> Worker {
    let (stdout, its_stdout) = stderr_pipe().expect("a pipe");
    let mut command = command(env::current_exe().expect("this program"));
    client.hand_to(&mut command).env(ROLE, role).env(NUMBER, number.to_string());
    command.env(COOKIE, cookie(role, number)).stdin(Stdio::null()).stdout(its_stdout);
    Worker { process: Process::spawn(&mut command).expect("a process"), stdout }
}

impl Worker {
    /// Waits until it has sent all its requests.
    fn until_it_hangs(&self) {
        let bound = now().saturating_add(BOUND);
        let ready = wait_readable(&[self.stdout.as_fd()], Some(bound)).expect("a wait");
        assert_eq!(ready, [true], "the worker has not come so far");
    }

    fn exit(&self) -> Exit {
        self.process.reap().expect("our child")
    }

    fn is_running(&self) -> bool {
        self.process.try_reap().expect("our child").is_none()
    }

    fn pid(&self) -> u32 {
        self.process.pid()
    }

    fn signal(&self, signal: Signal) {
        self.process.signal_group(signal).expect("our child");
    }
}

/// Waits until the deadline of a worker has come that hangs already.
fn wait_past(after: Duration) {
    let deadline = Instant::now() + after;
    wait_until("a deadline", BOUND, || Instant::now() > deadline);
}

fn cookie(role: &str, number: u64) -> String {
    format!("{}/{role}/{number}", std::process::id())
}

/// A server that runs, and its events.
fn server(settings: impl FnOnce(TimerServerBuilder) -> TimerServerBuilder) -> (TimerServer, Seen) {
    let (mut server, seen) = idle_server(settings);
    server.start().expect("a thread");
    assert_eq!(seen.next(), TimerEvent::Started);
    (server, seen)
}

/// A server that does not run yet.
fn idle_server(
    settings: impl FnOnce(TimerServerBuilder) -> TimerServerBuilder,
) -> (TimerServer, Seen) {
    let (sender, receiver) = channel();
    let builder = TimerServer::builder().on_event(move |event| {
        // The test may have ended before its workers.
        let _ = sender.send(event.clone());
    });
    (settings(builder).build().expect("a server"), Seen(receiver))
}

/// What a server has told.
struct Seen(Receiver<TimerEvent>);

impl Seen {
    fn next(&self) -> TimerEvent {
        self.0.recv_timeout(BOUND).expect("an event within the bound")
    }

    /// The first event from here on of which this is true.
    fn until(&self, mut wanted: impl FnMut(&TimerEvent) -> bool) -> TimerEvent {
        loop {
            let event = self.next();
            if wanted(&event) {
                return event;
            }
        }
    }

    /// What was told and not looked at.
    fn rest(&self) -> Vec<TimerEvent> {
        self.0.try_iter().collect()
    }

    /// Turns a server that does not run, until a worker has connected.
    fn turn_until_registered(&self, server: &mut TimerServer, process: &Worker) {
        let registered = TimerEvent::Registered { pid: process.pid() };
        wait_until("a worker's connection", BOUND, || {
            server.run_once().expect("a turn");
            self.rest().contains(&registered)
        });
        // The greeting is still to come, and then its requests, which may be read or not.
        wait_until("a worker's greeting", BOUND, || {
            server.run_once().expect("a turn");
            let bound = now().saturating_add(Duration::from_millis(1));
            wait_readable(&[process.stdout.as_fd()], Some(bound)).expect("a wait")[0]
        });
    }

    fn until_registered(&self, process: &Worker) {
        let pid = process.pid();
        self.until(|event| *event == TimerEvent::Registered { pid });
    }

    /// Waits until a process has ended; answers how many timers it had left.
    fn until_exited(&self, process: &Worker) -> usize {
        let exited = self.until(
            |event| matches!(event, TimerEvent::Exited { pid, .. } if *pid == process.pid()),
        );
        let TimerEvent::Exited { timers, .. } = exited else { unreachable!() };
        timers
    }
}
