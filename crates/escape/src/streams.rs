//! The host, through what it does with a worker's output and with the files that a worker loads:
//! made at every level, in a pool whose workers print where the host does.

use std::ffi::CString;

use brigade_testkit_sys::misdeeds::call_library;

use crate::attempt::{Attempt, Ruins, address, call};

/// Standard output.
const OUTPUT: u64 = 1;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "make standard output not wait",
        ruins: Ruins::Nothing,
        run: |_| tampers(libc::SYS_fcntl, [OUTPUT, SETS_FLAGS, libc::O_NONBLOCK as u64, 0]),
    },
    Attempt {
        name: "make standard output append",
        ruins: Ruins::Nothing,
        run: |_| tampers(libc::SYS_fcntl, [OUTPUT, SETS_FLAGS, libc::O_APPEND as u64, 0]),
    },
    Attempt {
        name: "truncate standard output",
        ruins: Ruins::Nothing,
        run: |_| tampers(libc::SYS_ftruncate, [OUTPUT, 0, 0, 0]),
    },
    Attempt {
        name: "move the position of standard output",
        ruins: Ruins::Nothing,
        run: |_| tampers(libc::SYS_lseek, [OUTPUT, 0, 0, 0]),
    },
    Attempt {
        name: "write over standard output",
        ruins: Ruins::Nothing,
        run: |_| tampers(libc::SYS_pwrite64, [OUTPUT, address(FORGED.as_ptr()), 6, 0]),
    },
    Attempt {
        name: "shut standard output",
        ruins: Ruins::Link,
        run: |_| tampers(libc::SYS_shutdown, [OUTPUT, 2, 0, 0]),
    },
    Attempt {
        name: "crash in a module that names a file of the host",
        ruins: Ruins::Link,
        run: |it| {
            let library = CString::new(it.module.clone()).map_err(|error| error.to_string())?;
            let called = call_library(&library, c"decode", 8);
            Err(format!("the module did not crash: {called:?}"))
        },
    },
];

const SETS_FLAGS: u64 = libc::F_SETFL as u64;

const FORGED: &[u8] = b"FORGED";

/// Makes a call, of which the host must notice nothing.
#[expect(clippy::unnecessary_wraps, reason = "the end of an attempt")]
fn tampers(number: i64, arguments: [u64; 4]) -> Result<i32, String> {
    call(number, arguments);
    Ok(0)
}
