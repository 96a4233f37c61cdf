//! A timer server and real processes that are in time, late, forking, broken or killed.
//!
//! This executable is the client process as well: [`play`] runs before `main` and reads its role
//! from a variable.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

mod clients;
mod deadlines;
mod forked;
mod other_users;
mod owners;
mod recycled;
mod requests;
mod shortage;

use std::env;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use brigade_sys::before_main;
use brigade_sys::clock::now;
use brigade_sys::descriptors::output_pipe;
use brigade_sys::process::{Exit, Process, command};
use brigade_sys::wait::wait_readable;
use brigade_testkit::{BOUND, wait_until};
use brigade_timer::{Escalation, Signal, TimerClient, TimerEvent, TimerServer, TimerServerBuilder};

before_main!(play);

/// The role of this process. Without it, the process runs the tests.
const ROLE: &str = "BRIGADE_TIMER_TEST_ROLE";
/// Milliseconds, or another number that the role needs.
const NUMBER: &str = "BRIGADE_TIMER_TEST_NUMBER";
/// Identifies a child and all its descendants.
const COOKIE: &str = "BRIGADE_TIMER_TEST_COOKIE";

/// Held by tests that change this process's configured client.
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
            let log = client.with_escalation(Escalation::log_only());
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

/// Reports that all requests were sent, and then does nothing.
fn hang() -> ! {
    std::io::stdout().write_all(b".").expect("the test reads it");
    std::io::stdout().flush().expect("the test reads it");
    loop {
        std::thread::park();
    }
}

/// A child process that plays a role.
struct Child {
    process: Process,
    stdout: OwnedFd,
}

/// Starts a child that uses this server.
fn start_child(client: &TimerClient, role: &str, number: u64) -> Child {
    let (stdout, its_stdout) = output_pipe().expect("a pipe");
    let mut command = command(env::current_exe().expect("this program"));
    client.hand_to(&mut command).env(ROLE, role).env(NUMBER, number.to_string());
    command.env(COOKIE, cookie(role, number)).stdin(Stdio::null()).stdout(its_stdout);
    Child { process: Process::spawn(&mut command).expect("a process"), stdout }
}

impl Child {
    /// Waits until it has sent all its requests.
    fn wait_until_hanging(&self) {
        let bound = now().saturating_add(BOUND);
        let ready = wait_readable(&[self.stdout.as_fd()], Some(bound)).expect("a wait");
        assert_eq!(ready, [true], "the child has not sent its requests");
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

/// Waits until a deadline that was armed before has passed.
fn wait_past(after: Duration) {
    let deadline = Instant::now() + after;
    wait_until("a deadline", BOUND, || Instant::now() > deadline);
}

fn cookie(role: &str, number: u64) -> String {
    format!("{}/{role}/{number}", std::process::id())
}

/// Returns a running server and its events.
fn server(settings: impl FnOnce(TimerServerBuilder) -> TimerServerBuilder) -> (TimerServer, Seen) {
    let (mut server, seen) = idle_server(settings);
    server.start().expect("a thread");
    assert_eq!(seen.next(), TimerEvent::Started);
    (server, seen)
}

/// Returns a server that is not started.
fn idle_server(
    settings: impl FnOnce(TimerServerBuilder) -> TimerServerBuilder,
) -> (TimerServer, Seen) {
    let (sender, receiver) = channel();
    let builder = TimerServer::builder().on_event(move |event| {
        // The test may end before its children do.
        let _ = sender.send(event.clone());
    });
    (settings(builder).build().expect("a server"), Seen(receiver))
}

/// The events of a server.
struct Seen(Receiver<TimerEvent>);

impl Seen {
    fn next(&self) -> TimerEvent {
        self.0.recv_timeout(BOUND).expect("an event within the bound")
    }

    /// Returns the next event that satisfies `wanted`.
    fn until(&self, mut wanted: impl FnMut(&TimerEvent) -> bool) -> TimerEvent {
        loop {
            let event = self.next();
            if wanted(&event) {
                return event;
            }
        }
    }

    /// Returns the events that were not read yet.
    fn rest(&self) -> Vec<TimerEvent> {
        self.0.try_iter().collect()
    }

    /// Runs turns of a server without a thread until a child has connected.
    fn turn_until_registered(&self, server: &mut TimerServer, process: &Child) {
        let registered = TimerEvent::Registered { pid: process.pid() };
        wait_until("a child's connection", BOUND, || {
            server.run_once().expect("a turn");
            self.rest().contains(&registered)
        });
        // `Hello` is still to come, then the child's requests, which may be read or not.
        wait_until("a child's `Hello`", BOUND, || {
            server.run_once().expect("a turn");
            let bound = now().saturating_add(Duration::from_millis(1));
            wait_readable(&[process.stdout.as_fd()], Some(bound)).expect("a wait")[0]
        });
    }

    fn until_registered(&self, process: &Child) {
        let pid = process.pid();
        self.until(|event| *event == TimerEvent::Registered { pid });
    }

    /// Waits until a child has exited and returns the number of timers it had armed.
    fn until_exited(&self, process: &Child) -> usize {
        let exited = self.until(
            |event| matches!(event, TimerEvent::Exited { pid, .. } if *pid == process.pid()),
        );
        let TimerEvent::Exited { timers, .. } = exited else { unreachable!() };
        timers
    }
}
