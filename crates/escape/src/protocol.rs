//! The host, through what a worker shares with it: its sockets and descriptors.

use std::time::Duration;

use brigade_wire::handshake::{Answer, FromWorkerControl, Token, WorkerProgram};

use crate::attempt::{Attempt, Ruins, address, call};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt { name: "packets of noise", ruins: Ruins::Link, run: |_| sends(&[0xff; 100]) },
    Attempt { name: "an empty packet", ruins: Ruins::Link, run: |_| sends(&[]) },
    Attempt {
        name: "a packet as long as possible",
        ruins: Ruins::Link,
        run: |_| sends(&[7; 64 << 10]),
    },
    Attempt { name: "a second answer", ruins: Ruins::Link, run: |_| forges(&answer()) },
    Attempt {
        name: "ready once more",
        ruins: Ruins::Link,
        run: |_| forges(&FromWorkerControl::Ready),
    },
    Attempt {
        name: "initialized once more",
        ruins: Ruins::Link,
        run: |_| forges(&FromWorkerControl::Initialized { takes_descriptors: true }),
    },
    Attempt {
        name: "a failed initializer",
        ruins: Ruins::Link,
        run: |_| forges(&FromWorkerControl::InitializerFailed { reason: "x".repeat(60_000) }),
    },
    Attempt {
        name: "a refusal",
        ruins: Ruins::Link,
        run: |_| forges(&FromWorkerControl::Refused { reason: "\u{1b}[2J".to_owned() }),
    },
    Attempt {
        name: "a crash without a record",
        ruins: Ruins::Link,
        run: |_| forges(&FromWorkerControl::Crashed),
    },
    Attempt {
        name: "a sample that nobody wants",
        ruins: Ruins::Link,
        run: |_| forges(&FromWorkerControl::Sampled),
    },
    Attempt {
        name: "sections without end",
        ruins: Ruins::Link,
        run: |_| {
            let packets = (0..1000).map(|due| FromWorkerControl::Section { due: due << 54 });
            packets.filter_map(|it| it.encode().ok()).for_each(|packet| broadcast(&packet));
            Ok(0)
        },
    },
    Attempt {
        name: "noise in all shared memory",
        ruins: Ruins::Link,
        run: |_| {
            let noise = [0xa5_u8; 4096];
            for descriptor in 0..64 {
                for page in 0..64 {
                    let at = address(noise.as_ptr());
                    call(libc::SYS_pwrite64, [descriptor, at, 4096, page * 4096]);
                }
            }
            Ok(0)
        },
    },
    Attempt {
        name: "close everything",
        ruins: Ruins::Link,
        run: |_| {
            call(libc::SYS_close_range, [0, u64::from(u32::MAX), 0]);
            Ok(0)
        },
    },
    Attempt {
        name: "shut the control socket",
        ruins: Ruins::Link,
        run: |_| {
            for descriptor in 0..64 {
                call(libc::SYS_shutdown, [descriptor, 2]);
            }
            Ok(0)
        },
    },
];

fn answer() -> FromWorkerControl {
    FromWorkerControl::Answer(Answer {
        version: u32::MAX,
        token: Token::random(),
        pid: 1,
        program: WorkerProgram { identity: [0; 32], has_names: false, version: None },
        server: "/etc/passwd".to_owned(),
        arenas: true,
    })
}

fn forges(message: &FromWorkerControl) -> Result<i32, String> {
    sends(&message.encode().map_err(|error| error.to_string())?)
}

#[expect(clippy::unnecessary_wraps, reason = "the end of an attempt")]
fn sends(packet: &[u8]) -> Result<i32, String> {
    broadcast(packet);
    // The host has time to judge before the task has an outcome.
    brigade_testkit::pause(Duration::from_millis(50));
    Ok(0)
}

/// Sends a packet over each descriptor that is a socket.
fn broadcast(packet: &[u8]) {
    const FLAGS: u64 = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as u64;
    for descriptor in 0..64 {
        let at = address(packet.as_ptr());
        call(libc::SYS_sendto, [descriptor, at, packet.len() as u64, FLAGS, 0, 0]);
    }
}
