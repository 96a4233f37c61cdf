//! The version and the marker, which both sides compare first.

/// Version of the protocol; it goes up with every change of a message or of the handshake.
pub const PROTOCOL_VERSION: u32 = 23;

/// The environment variable that makes a process a worker; its value is `<version>:<host's pid>`.
pub const MARKER: &str = "BRIGADE_WORKER";
