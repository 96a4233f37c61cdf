//! How much the host may have under way, so that the worker's socket is never full.
//!
//! A Unix socket counts the memory of its packets, not their bytes: a packet of one byte takes about 768 bytes, a larger one
//! up to twice its size. [`cost`] is above what was measured for any size; the window of all costs stays below the
//! socket's buffer. The worker reports what it has consumed at the latest when that makes half a window, and no packet costs
//! more than a third, so the host is never stuck with an idle worker.

use std::sync::OnceLock;

/// What Linux gives a socket by default (`net.core.wmem_default`).
const DEFAULT_BUFFER: usize = 212_992;

/// The largest piece of a message in one packet.
const LARGEST_PIECE: usize = 32 * 1024;

/// The window and what follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// The most cost under way.
    pub(super) size: u64,
    /// The most bytes of a message in one packet.
    pub(super) piece: usize,
}

/// The window on this machine.
pub(super) fn window() -> Window {
    static WINDOW: OnceLock<Window> = OnceLock::new();
    *WINDOW.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/net/core/wmem_default");
        let buffer = text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(DEFAULT_BUFFER);
        for_buffer(buffer)
    })
}

fn for_buffer(buffer: usize) -> Window {
    let size = (buffer - buffer / 16).clamp(3 * 2048, 3 * (2 * LARGEST_PIECE + 2048));
    let piece = ((size / 3).saturating_sub(2048) / 2).clamp(256, LARGEST_PIECE);
    Window { size: size as u64, piece }
}

/// What a packet of so many bytes takes of the socket's buffer, at the most.
pub(super) fn cost(packet: usize) -> u64 {
    packet as u64 * 2 + 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_packet_costs_more_than_a_third_of_the_window() {
        for buffer in [4_608, 16_384, DEFAULT_BUFFER, 1 << 24] {
            let window = for_buffer(buffer);
            let header = 1 + 8 + 8;
            assert!(cost(window.piece + header) <= window.size / 3, "{buffer}: {window:?}");
        }
        assert!(for_buffer(DEFAULT_BUFFER).size < DEFAULT_BUFFER as u64);
    }
}
