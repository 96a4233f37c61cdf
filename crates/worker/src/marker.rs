//! The environment variable that turns a process into a worker.
//!
//! A worker removes it from its environment, so that processes that its tasks start are not
//! mistaken for workers. That is not allowed while another thread runs (an allocator or a preloaded
//! library may start one before `main`). Then these processes inherit the variable. They are no
//! workers nevertheless, because their parent is not the host and their standard input is not a
//! control socket.

use std::env;
use std::ffi::OsStr;

use brigade_sys::control::ControlSocket;
use brigade_sys::environment;
use brigade_sys::process::parent_pid;
use brigade_wire::version::MARKER;

use crate::error::CannotStart;

/// The content of the variable: "version:host".
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) version: u32,
    pub(crate) host: u32,
}

impl Marker {
    /// Returns `true` if a host has started this process as a worker. A malformed value counts;
    /// [`read`](Self::read) reports it as an error.
    pub(crate) fn is_ours() -> bool {
        let Some(value) = env::var_os(MARKER) else {
            return false;
        };
        // Checking the parent alone is not enough: a host that has ended is no parent, nor is one
        // behind a wrapper.
        Self::parse(&value).is_none_or(|marker| {
            marker.host == parent_pid() || ControlSocket::is_end(std::io::stdin())
        })
    }

    pub(crate) fn read() -> Result<Self, CannotStart> {
        let value = env::var_os(MARKER).unwrap_or_default();
        Self::parse(&value).ok_or(CannotStart::Marker(value))
    }

    /// Removes the variable from the environment, if that is allowed.
    pub(crate) fn remove() {
        // Otherwise it stays, and does no harm; see the module's documentation.
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
    fn a_marker_holds_a_version_and_a_process_id() {
        let marker = Marker::parse(OsStr::new("1:4711"));
        assert_eq!(marker, Some(Marker { version: 1, host: 4711 }));
    }

    #[test]
    fn malformed_values_are_refused() {
        for value in ["", "1", "1:", ":2", "one:2", "1:2:3", "-1:2", "1:99999999999"] {
            assert_eq!(Marker::parse(OsStr::new(value)), None, "{value:?}");
        }
    }
}
