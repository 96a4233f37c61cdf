//! Limits the data in flight to a worker, so that the worker's socket is never full.
//!
//! A Unix socket counts the memory of its packets, not their bytes: a packet of one byte takes
//! about 768 bytes, a larger one up to twice its size. [`cost`] is above the measured values for
//! all sizes; the window of all costs stays below the socket's buffer. The worker reports its
//! consumption at the latest when that makes half a window, and no packet costs more than a third,
//! so the host is never stuck with an idle worker.

use ipc_channel::platform::OsIpcSender;

/// Maximum size of a fragment in one packet.
const MAX_FRAGMENT: usize = 32 * 1024;

/// The window and the values derived from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// Maximum total cost in flight.
    pub(crate) size: u64,
    /// Maximum number of a message's bytes in one packet.
    pub(crate) fragment: usize,
}

/// Returns the window for this machine.
pub(crate) fn window() -> Window {
    // The size of a socket's buffer, less about 500 bytes. ipc-channel has asked a socket for it,
    // once; the system's setting (`net.core.wmem_default`) is not visible in the network namespace
    // of a container on older kernels.
    for_buffer(OsIpcSender::get_max_fragment_size())
}

fn for_buffer(buffer: usize) -> Window {
    let size = (buffer - buffer / 16).clamp(3 * 2048, 3 * (2 * MAX_FRAGMENT + 2048));
    let fragment = ((size / 3).saturating_sub(2048) / 2).clamp(256, MAX_FRAGMENT);
    Window { size: size as u64, fragment }
}

/// Returns an upper bound for the part of the socket's buffer that a packet of `packet` bytes
/// takes.
pub(crate) fn cost(packet: usize) -> u64 {
    packet as u64 * 2 + 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_packet_costs_more_than_a_third_of_the_window() {
        for buffer in [4_080, 16_384, 212_448, 1 << 24] {
            let window = for_buffer(buffer);
            let header = 1 + 8 + 8;
            assert!(cost(window.fragment + header) <= window.size / 3, "{buffer}: {window:?}");
        }
    }

    #[test]
    fn the_window_is_smaller_than_the_buffer() {
        // With smaller buffers (Linux allows 4,608) the window's lower bound is above the buffer by
        // less than one packet, and Linux takes a packet as long as any room is left.
        for buffer in [6_600, 16_384, 212_448, 1 << 24] {
            assert!(for_buffer(buffer).size < buffer as u64, "{buffer}");
        }
    }
}
