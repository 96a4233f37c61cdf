//! Servers of NATS JetStream that end with the test.
//!
//! A server is bound to the thread that starts it by a parent-death signal, so each has a thread
//! that lives as long: it ends with the test's process, even if that is killed.

mod cluster;
mod port;

use std::env;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::process::Command;
use std::slice;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use brigade_supervisor::{CommandLine, LaunchSettings, Launcher};
use brigade_sys::process::{Process, Signal};
use tempfile::TempDir;

use self::port::Port;
use crate::{BOUND, pause, wait_or_explain};

pub use cluster::NatsCluster;

/// Maximum time until a server is ready. A cluster that has lost its leader elects another one only
/// after up to ten seconds, and may have to try again, several times on a busy machine.
const READY: Duration = Duration::from_secs(120);

/// Time between two questions for the health of a server, each of which is a line in its log.
const NEXT_HEALTH: Duration = Duration::from_millis(50);

/// The line that each such question leaves in the log of a server that is not ready.
const NOT_READY: &str = "Healthcheck failed";

/// Number of other lines of a log that a description ends with.
const LOG_LINES: usize = 60;

const LOOPBACK: &str = "127.0.0.1";

/// The server's program, from the Debian package `nats-server`.
const PROGRAM: &str = "nats-server";

/// The variable with the path of another version of the program, whose file name must be the same.
const OTHER_PROGRAM: &str = "BRIGADE_NATS_SERVER";

/// A server with JetStream, whose data are in a folder of its own.
///
/// Dropping it kills the server and removes the data.
#[derive(Debug)]
pub struct NatsServer {
    folder: TempDir,
    name: String,
    /// The address of this machine on which it listens.
    address: String,
    /// Arguments for the cluster that the server belongs to, or for its configuration.
    options: Vec<String>,
    clients: Port,
    monitoring: Port,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    process: Arc<Process>,
    /// Waits for the end of the process.
    thread: JoinHandle<()>,
}

impl NatsServer {
    /// Returns `true` if the program is installed. Tests that need it pass without it, and
    /// `cargo xtask test` says that they were left out.
    pub fn installed() -> bool {
        program().arg("--version").output().is_ok()
    }

    /// Returns `true` if the server is of a version that may lose messages that it has
    /// acknowledged, as one of three that are killed one after the other.
    pub fn forgets() -> bool {
        let version = program().arg("--version").output().map(|it| it.stdout).unwrap_or_default();
        String::from_utf8_lossy(&version).contains("v2.9.")
    }

    /// Starts a server on loopback, and waits until it is ready.
    ///
    /// # Panics
    /// Panics if it cannot be started, or is not ready in time.
    pub fn start() -> Self {
        let mut server = Self::new("alone", LOOPBACK, Vec::new());
        server.restart();
        server
    }

    /// Starts a server with a configuration, such as one with TLS or with users.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn with_configuration(text: &str) -> Self {
        let mut server = Self::new("alone", LOOPBACK, Vec::new());
        let path = server.folder.path().join("configuration");
        fs::write(&path, text).expect("the folder is ours");
        server.options = vec!["-c".to_owned(), path.display().to_string()];
        server.restart();
        server
    }

    /// Asks the server's monitoring, such as `/varz`. Returns the answer with its headers, or
    /// `None` without one.
    pub fn monitor(&self, path: &str) -> Option<String> {
        monitor(&self.address, self.monitoring.number(), path)
    }

    fn new(name: &str, address: &str, options: Vec<String>) -> Self {
        // Not a name that begins with `brigade`: a `LeakCheck` of another test would count it.
        let folder = TempDir::with_prefix("nats-of-brigade").expect("a folder");
        let (clients, monitoring) = (Port::reserve(address), Port::reserve(address));
        let (name, address) = (name.to_owned(), address.to_owned());
        Self { folder, name, address, options, clients, monitoring, running: None }
    }

    /// Returns the address for clients. It stays the same after a restart.
    pub fn url(&self) -> String {
        format!("nats://{}:{}", self.address, self.clients.number())
    }

    /// Returns the server's process id.
    ///
    /// # Panics
    /// Panics if it was killed and not restarted.
    pub fn pid(&self) -> u32 {
        self.running.as_ref().expect("it runs").process.pid()
    }

    /// Kills the server with SIGKILL, and waits for its end.
    ///
    /// # Panics
    /// Panics if the system refuses that.
    pub fn kill(&mut self) {
        let Some(Running { process, thread }) = self.running.take() else { return };
        process.signal(Signal::Kill).expect("it is ours");
        thread.join().expect("it only waits");
    }

    /// Starts the server again after [`kill`](Self::kill), with the same ports and data, and waits
    /// until it is ready.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn restart(&mut self) {
        self.kill();
        self.launch();
        await_ready(slice::from_ref(self));
    }

    /// Describes the server for the message of a test that fails: its health, its streams, and the
    /// end of its log.
    pub fn describe(&self) -> String {
        let answer = |path| self.monitor(path).unwrap_or_else(|| "no answer".to_owned());
        let health = answer("/healthz");
        let streams = answer("/jsz?consumers=true");
        let log = self.log();
        let lines: Vec<_> = log.lines().filter(|line| !line.contains(NOT_READY)).collect();
        let end = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
        format!("{}: {health}\n{streams}\n{end}\n", self.name)
    }

    /// Returns the server's log, of all its runs.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn command(&self) -> Command {
        let mut command = program();
        command.args(["-a", &self.address, "-n", &self.name, "-js"]);
        command.arg("-p").arg(self.clients.number().to_string());
        command.arg("-m").arg(self.monitoring.number().to_string());
        command.arg("-sd").arg(self.folder.path().join("data"));
        command.arg("-l").arg(self.folder.path().join("log"));
        command.args(&self.options);
        command
    }

    /// Starts the process on a thread that waits for its end.
    fn launch(&mut self) {
        let line = CommandLine::from(&self.command());
        let (sender, receiver) = channel();
        let body = move || {
            let null = File::options().read(true).write(true).open("/dev/null").expect("there");
            let start = LaunchSettings::new([null.as_fd(); 3]);
            let mut launcher = Launcher::new(&[]);
            let prepared = launcher.prepare(&line).expect("no NUL");
            let process = Arc::new(launcher.launch(None, &prepared, &start).expect("it starts"));
            sender.send(Arc::clone(&process)).expect("the test waits for it");
            // Nobody else reaps it.
            let _ = process.reap();
        };
        let thread = thread::Builder::new().name(PROGRAM.to_owned()).spawn(body);
        let thread = thread.expect("a thread");
        let process = receiver.recv().expect("nats-server starts");
        self.running = Some(Running { process, thread });
    }

    /// Returns `true` if the server says that it is ready, JetStream and the leader of its cluster
    /// included.
    fn is_healthy(&self) -> bool {
        self.monitor("/healthz").is_some_and(|answer| answer.contains("\"status\":\"ok\""))
    }
}

/// Waits until all of the servers accept clients.
fn await_ready(servers: &[NatsServer]) {
    let are_ready = || {
        for server in servers {
            // The others may wait for it in vain.
            let runs = server.running.as_ref().is_some_and(|it| !it.thread.is_finished());
            assert!(runs, "nats-server has ended: {}", server.describe());
        }
        let are_ready = servers.iter().all(NatsServer::is_healthy);
        if !are_ready {
            pause(NEXT_HEALTH);
        }
        are_ready.then_some(())
    };
    let describe = || servers.iter().map(NatsServer::describe).collect();
    wait_or_explain("nats-server to be ready", READY, are_ready, describe);
}

fn program() -> Command {
    Command::new(env::var_os(OTHER_PROGRAM).unwrap_or_else(|| PROGRAM.into()))
}

fn monitor(address: &str, port: u16, path: &str) -> Option<String> {
    let mut socket = TcpStream::connect((address, port)).ok()?;
    socket.set_read_timeout(Some(BOUND)).ok()?;
    socket.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    Some(answer)
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        // In a test that fails, the kill must not panic again.
        let Some(Running { process, thread }) = self.running.take() else { return };
        let _ = process.signal(Signal::Kill);
        let _ = thread.join();
    }
}
