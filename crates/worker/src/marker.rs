//! The variable that makes a process a worker.
//!
//! A worker takes it out of its environment, so that nothing that its tasks start is taken for a worker. While another
//! thread runs that is not allowed (an allocator or a preloaded library may start one before `main`). Then what the tasks
//! start inherits the variable. Such a process is no worker all the same: it has another parent than the host, and
//! its standard input is no control socket.

use std::env;
use std::ffi::OsStr;

use brigade_sys::control::ControlSocket;
use brigade_sys::environment;
use brigade_sys::process::parent_pid;
use brigade_wire::version::MARKER;

use crate::error::StartError;

/// What the variable says: "version:host".
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) version: u32,
    pub(crate) host: u32,
}

impl Marker {
    /// Whether a host has started this very process as a worker. A value that no host writes counts: it is an error that
    /// [`read`](Self::read) reports.
    pub(crate) fn is_ours() -> bool {
        let Some(value) = env::var_os(MARKER) else {
            return false;
        };
        // The parent alone would not do: a host that has ended is nobody's parent, nor is one behind a wrapper.
        Self::parse(&value).is_none_or(|marker| {
            marker.host == parent_pid() || ControlSocket::is_end(std::io::stdin())
        })
    }

    pub(crate) fn read() -> Result<Self, StartError> {
        let value = env::var_os(MARKER).unwrap_or_default();
        Self::parse(&value).ok_or(StartError::Marker(value))
    }

    /// Takes the variable out of the environment, if that is allowed.
    pub(crate) fn take_away() {
        // If not it stays, and does no harm, as this module says.
        let _ = environment::take(MARKER);
    }

    fn parse(value: &OsStr) -> Option<Self> {
        let (version, host) = value.to_str()?.split_once(':')?;
        Some(Self { version: version.parse().ok()?, host: host.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_a_version_and_a_process() {
        let marker = Marker::parse(OsStr::new("1:4711"));
        assert_eq!(marker, Some(Marker { version: 1, host: 4711 }));
    }

    #[test]
    fn values_that_no_host_writes_are_refused() {
        for value in ["", "1", "1:", ":2", "one:2", "1:2:3", "-1:2", "1:99999999999"] {
            assert_eq!(Marker::parse(OsStr::new(value)), None, "{value:?}");
        }
    }
}
