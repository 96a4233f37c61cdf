//! Servers and amounts for all contestants of the section about clusters.

use brigade_testkit::{NatsCluster, NatsServer};

use crate::report::Outcome;

/// Maximum number of tasks of one lap.
pub(crate) const MAX: usize = 100_000;

/// Maximum number of mapped items of one lap.
pub(crate) const MAX_MAPPED: usize = 2_000_000;

/// Items of a message, where several travel in one.
pub(crate) const ITEMS: usize = 64;

/// Bytes of a large payload.
pub(crate) const OBJECT_SIZE: usize = 4 << 20;

/// The servers that keep the queue, in files.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Servers {
    One,
    /// Each message is kept by all three.
    Three,
}

pub(crate) const SERVERS: [Servers; 2] = [Servers::One, Servers::Three];

/// Servers that end when this is dropped.
pub(crate) enum Running {
    One(NatsServer),
    Three(NatsCluster),
}

impl Servers {
    /// Returns the beginning of the names of figures.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::One => "r1",
            Self::Three => "r3",
        }
    }

    pub(crate) fn replicas(self) -> usize {
        match self {
            Self::One => 1,
            Self::Three => 3,
        }
    }

    pub(crate) fn start(self) -> Outcome<Running> {
        if !NatsServer::installed() {
            return Err("nats-server is not installed (Debian package nats-server)".into());
        }
        Ok(match self {
            Self::One => Running::One(NatsServer::start()),
            Self::Three => Running::Three(NatsCluster::start(3)),
        })
    }
}

impl Running {
    /// Returns the addresses for clients, separated by commas.
    pub(crate) fn urls(&self) -> String {
        match self {
            Self::One(server) => server.url(),
            Self::Three(servers) => servers.urls(),
        }
    }

    pub(crate) fn all(&self) -> &[NatsServer] {
        match self {
            Self::One(server) => std::slice::from_ref(server),
            Self::Three(servers) => servers.servers(),
        }
    }
}
