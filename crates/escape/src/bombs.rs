//! Bombs: memory, processors, threads, descriptors, output.

use std::hint::black_box;
use std::io::Write;
use std::sync::mpsc;
use std::thread;

use brigade_testkit_sys::misdeeds;

use crate::attempt::{Attempt, Ruins, call, refused};

/// Ten times the limit.
const BYTES: usize = 640 << 20;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "memory: many small blocks",
        ruins: Ruins::Allocations,
        run: |_| {
            let blocks: Vec<_> = (0..BYTES >> 12).map(|_| black_box(vec![1_u8; 4096])).collect();
            Err(format!("{} blocks", blocks.len()))
        },
    },
    Attempt {
        name: "memory: one large block",
        ruins: Ruins::Allocations,
        run: |_| Err(format!("{} bytes", black_box(vec![1_u8; BYTES]).len())),
    },
    Attempt {
        name: "memory: anonymous and shared",
        ruins: Ruins::Allocations,
        run: |_| {
            let access = (libc::PROT_READ | libc::PROT_WRITE) as u64;
            let flags = (libc::MAP_SHARED | libc::MAP_ANONYMOUS) as u64;
            let at = call(libc::SYS_mmap, [0, BYTES as u64, access, flags, u64::MAX, 0]);
            fill(at)
        },
    },
    Attempt {
        name: "memory: the heap of the kernel's making",
        ruins: Ruins::Allocations,
        run: |_| {
            let end = call(libc::SYS_brk, [0]);
            let wanted = end.saturating_add_unsigned(BYTES as u64);
            let now = call(libc::SYS_brk, [wanted.cast_unsigned()]);
            if now < wanted { Ok(libc::ENOMEM) } else { fill(end) }
        },
    },
    Attempt {
        name: "memory: the arena of results",
        ruins: Ruins::Allocations,
        run: |_| {
            let buffers: Vec<_> = (0..BYTES >> 20)
                .map_while(|_| {
                    let mut buffer = brigade::worker::try_alloc(1 << 20).ok()?;
                    buffer.fill(1);
                    Some(buffer)
                })
                .collect();
            if buffers.len() < 100 {
                Ok(libc::ENOMEM)
            } else {
                Err(format!("{} MiB", buffers.len()))
            }
        },
    },
    Attempt {
        name: "memory: stacks of threads",
        ruins: Ruins::Allocations,
        run: |_| {
            let (open, gate) = mpsc::sync_channel::<()>(0);
            let gate = std::sync::Mutex::new(gate);
            thread::scope(|scope| {
                let started = (0..200)
                    .map_while(|_| {
                        let wait = || {
                            let filled = black_box([1_u8; 2 << 20]);
                            let _ = gate.lock().map(|gate| gate.recv());
                            black_box(filled[0]);
                        };
                        thread::Builder::new().stack_size(6 << 20).spawn_scoped(scope, wait).ok()
                    })
                    .count();
                drop(open);
                if started < 200 { Ok(libc::EAGAIN) } else { Err("200 threads".to_owned()) }
            })
        },
    },
    Attempt {
        name: "threads",
        ruins: Ruins::Allocations,
        run: |_| {
            let (open, gate) = mpsc::sync_channel::<()>(0);
            let gate = std::sync::Mutex::new(gate);
            thread::scope(|scope| {
                let wait = || drop(gate.lock().map(|gate| gate.recv()));
                let spawn =
                    |_| thread::Builder::new().stack_size(32 << 10).spawn_scoped(scope, wait).ok();
                let started = (0..5000).map_while(spawn).count();
                drop(open);
                if started < 5000 { Ok(libc::EAGAIN) } else { Err("5,000 threads".to_owned()) }
            })
        },
    },
    Attempt {
        name: "processor time",
        ruins: Ruins::Allocations,
        run: |_| loop {
            black_box(0);
        },
    },
    Attempt {
        name: "processor time of threads",
        ruins: Ruins::Allocations,
        run: |_| {
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        loop {
                            black_box(0);
                        }
                    });
                }
            });
            Ok(0)
        },
    },
    Attempt {
        name: "descriptors",
        ruins: Ruins::Allocations,
        run: |_| {
            let opened = (0..100_000).map(|_| call(libc::SYS_dup, [0])).find(|it| *it < 0);
            opened.map_or(Err("100,000 descriptors".to_owned()), refused)
        },
    },
    Attempt {
        name: "output",
        ruins: Ruins::Allocations,
        run: |_| {
            let line = [b'x'; 1 << 16];
            for _ in 0..1600 {
                // The host takes it at its own pace, and keeps little of it.
                let _ = std::io::stderr().write_all(&line);
            }
            Ok(0)
        },
    },
];

/// Writes to each page of a mapping.
fn fill(at: i64) -> Result<i32, String> {
    let Ok(start) = u64::try_from(at) else { return refused(at) };
    for page in (0..BYTES as u64).step_by(4096) {
        misdeeds::write(start + page);
    }
    Err(format!("{BYTES} bytes"))
}
