//! Draws how each policy places 4 cores on a machine with two sockets, as shown in docs/cores.md.
//!
//! `cargo run -p brigade-cores --example placement`

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a fixed machine; the drawing is checked by a test")]

use std::fmt::Write;

use brigade_cores::{CorePool, CoreRequest, Level, Policy, Topology};

/// Two Xeons with 8 cores of 2 threads each, reduced from a recording in hwloc's test data.
const TWO_SOCKETS: &str = include_str!("../tests/fixtures/two-sockets.json");

fn main() {
    #[expect(clippy::print_stdout, reason = "an example shows what it does")]
    {
        print!("{}", drawing());
    }
}

/// Draws one line per request: its cpus, the level that they share, and the threads of each core,
/// `#` for newly leased ones and `o` for those leased before.
pub(crate) fn drawing() -> String {
    let topology: Topology = serde_json::from_str(TWO_SOCKETS).expect("a topology");
    let pool = CorePool::builder().topology(topology).build().expect("a pool");
    let four = CoreRequest::new(4);
    let requests = [
        ("contiguous", four),
        ("contiguous, whole cores", four.whole_cores()),
        ("contiguous, one thread", four.one_thread_per_core()),
        ("compact", four.policy(Policy::Compact)),
        ("compact, whole cores", four.policy(Policy::Compact).whole_cores()),
        ("scatter", four.policy(Policy::Scatter)),
    ];
    let mut drawing = String::new();
    let mut draw = |title: &str| {
        let heading = ["4 of:", "cpus", "within", "package 0"];
        let [name, cpus, within, package] = heading;
        let _ = writeln!(drawing, "{title}");
        let _ = writeln!(drawing, "{name:<24} {cpus:<15} {within:<9} {package:<25} package 1");
        for (name, request) in requests {
            let _ = writeln!(drawing, "{}", line(&pool, name, request));
        }
        let _ = writeln!(drawing);
    };
    draw("All cores are free:");
    let one_core = CoreRequest::new(1).whole_cores();
    let mut leases: Vec<_> = (0..5).map(|_| pool.reserve(one_core).expect("a free core")).collect();
    for core in [3, 1, 0] {
        drop(leases.remove(core));
    }
    draw("Two cores were leased before:");
    drawing.truncate(drawing.trim_end().len());
    drawing.push('\n');
    drawing
}

fn line(pool: &CorePool, name: &str, request: CoreRequest) -> String {
    let free = pool.free_cpus();
    let lease = pool.reserve(request).expect("room for 4");
    let mut line = format!("{name:<24} {:<15} {:<8}", lease.to_string(), lease.span().to_string());
    for package in pool.topology().objects(Level::Package) {
        line.push(' ');
        let cores = pool.topology().objects(Level::Core);
        for core in cores.filter(|core| core.cpus.is_subset(&package.cpus)) {
            line.push(' ');
            line.extend(core.cpus.iter().map(|cpu| match cpu {
                cpu if lease.cores().contains(cpu) => '#',
                cpu if free.contains(cpu) => '.',
                _ => 'o',
            }));
        }
    }
    line
}
