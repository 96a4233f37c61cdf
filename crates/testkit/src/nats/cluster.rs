//! Servers that replicate each other's data.

use super::port::Port;
use super::{LOOPBACK, NatsServer, await_ready};

/// Servers of one cluster on this machine, each with routes to all others; or a single server.
#[derive(Debug)]
pub struct NatsCluster {
    servers: Vec<NatsServer>,
    _routes: Vec<Port>,
}

impl NatsCluster {
    /// Starts a cluster on loopback, and waits until it has a leader.
    ///
    /// # Panics
    /// Panics if a server cannot be started, or is not ready in time.
    pub fn start(size: usize) -> Self {
        Self::start_on(LOOPBACK, size)
    }

    /// Starts a cluster on an address of this machine, and waits until it has a leader.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn start_on(address: &str, size: usize) -> Self {
        let ports: Vec<_> = (0..size).map(|_| Port::reserve(address)).collect();
        let route = |port: &Port| format!("nats://{address}:{}", port.number());
        let routes: Vec<_> = ports.iter().map(route).collect();
        let all = routes.join(",");
        let start = |(number, route): (usize, &String)| {
            let options = ["--cluster_name", "test", "--cluster", route, "--routes", &all];
            // A server without others is ready only if it knows that it is alone.
            let options = if size == 1 { Vec::new() } else { options.map(str::to_owned).into() };
            let mut server = NatsServer::new(&format!("server-{number}"), address, options);
            server.launch();
            server
        };
        let servers: Vec<_> = (1..).zip(&routes).map(start).collect();
        await_ready(&servers);
        Self { servers, _routes: ports }
    }

    /// Returns the addresses of all servers, separated by commas.
    pub fn urls(&self) -> String {
        let urls: Vec<_> = self.servers.iter().map(NatsServer::url).collect();
        urls.join(",")
    }

    /// Describes the servers for the message of a test that fails.
    pub fn describe(&self) -> String {
        self.servers.iter().map(NatsServer::describe).collect()
    }

    /// Returns `true` if all servers run, and each stream and consumer has a leader.
    pub fn is_healthy(&self) -> bool {
        self.servers.iter().all(NatsServer::is_healthy)
    }

    /// Kills all servers with SIGKILL, starts them again, and waits until they are ready.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn restart(&mut self) {
        self.servers.iter_mut().for_each(NatsServer::kill);
        self.servers.iter_mut().for_each(NatsServer::launch);
        await_ready(&self.servers);
    }

    /// Starts a server again after it was killed, and does not wait until it is ready.
    ///
    /// # Panics
    /// Panics if there are not that many, or it cannot be started.
    pub fn launch(&mut self, index: usize) {
        self.servers[index].launch();
    }

    /// Returns the servers.
    pub fn servers(&self) -> &[NatsServer] {
        &self.servers
    }

    /// Returns a server, to kill and restart it. A server that is restarted while it is alone is
    /// never ready.
    ///
    /// # Panics
    /// Panics if there are not that many.
    pub fn server(&mut self, index: usize) -> &mut NatsServer {
        &mut self.servers[index]
    }
}
