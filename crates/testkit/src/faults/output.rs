//! A task that floods the standard streams.

use std::io::{Write, stderr, stdout};

/// 1 MiB.
pub const MEBIBYTE: usize = 1 << 20;

/// Writes 1 MiB to stdout and 1 MiB to stderr, alternately. Returns the total number of bytes.
///
/// # Panics
/// Panics if a stream refuses them.
pub fn prints_a_mebibyte((): ()) -> usize {
    const LINE: &[u8; 64] = b"a task may print what it likes, nobody speaks a protocol there.\n";
    let (mut out, mut err) = (stdout().lock(), stderr().lock());
    for _ in 0..MEBIBYTE / LINE.len() {
        out.write_all(LINE).expect("stdout takes it");
        err.write_all(LINE).expect("stderr takes it");
    }
    out.flush().expect("stdout takes it");
    2 * MEBIBYTE
}
