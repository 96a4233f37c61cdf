//! Runs unit tests for ARM under the emulation of programs, which has pages of 4 KiB.
//!
//! It shows layout, numbers and instructions. The system calls are those of this machine's kernel,
//! and so is the order of memory.

use super::executables::{self, built};
use super::native::FEATURES;
use super::packages::{Packages, Release};
use super::{Counts, Stopped, toolchain};
use crate::invocation::Invocation;

/// Crates whose tests hardly start processes.
const CRATES: [&str; 8] = ["base", "codec", "metrics", "scheduler", "sys", "task", "trace", "wire"];

/// Tests of what the emulator does otherwise.
const LEFT_OUT: [(&str, &str); 25] = [
    ("a_block_without_memory", MEMORY),
    ("arena::tests::a_read_only_mapping", MEMORY),
    ("the_memory_of_a_dead_worker_goes_back", MEMORY),
    ("memory_beyond_the_kept_amount", MEMORY),
    ("a_death_leaves_exactly_the_loans", MEMORY),
    ("the_host_releases_memory", MEMORY),
    ("huge_pages::", MEMORY),
    ("confine::", "filters of system calls would be those of the emulator"),
    ("foreign_memory::tests::memory_", COPIES),
    ("foreign_memory::tests::parts_", COPIES),
    ("process::memory::tests::memory_", COPIES),
    ("arena::offer::tests::an_offer_that", COPIES),
    ("arena::offer::tests::offers_begin", COPIES),
    ("control::tests::packets_come", SOCKETS),
    ("handover::tests::the_end_of_sending", SOCKETS),
    ("copies::", PROCESSES),
    ("sibling::", PROCESSES),
    ("guardian::sweep::", PROCESSES),
    ("launch::", PROCESSES),
    ("lifeline::group::", PROCESSES),
    ("descendants::", PROCESSES),
    ("process::tests::a_missing_program", PROCESSES),
    ("promtool_accepts_the_text", PROCESSES),
    ("a_program_that_was_started_directly", "it was started by the emulator"),
    ("process::tests::each_process_leads", PROCESSES),
];
const MEMORY: &str = "the emulator does not pass `madvise` on";
const COPIES: &str = "the emulator cannot copy memory of another process";
const PROCESSES: &str = "the emulator starts processes in another way";
const SOCKETS: &str = "the emulator has descriptors of its own";

pub(super) fn run() -> Result<Vec<Counts>, Stopped> {
    let toolchain = toolchain::aarch64().map_err(Stopped::LeftOut)?;
    // What the tests below do not compile, such as the unwinder.
    let check = toolchain.cargo(&format!("check -p brigade --features {FEATURES},backtrace"));
    check.run().map_err(Stopped::Failed)?;
    let emulator = Packages::open(Release::Next)
        .and_then(|packages| packages.unpack("qemu-user", &["qemu-user:amd64"]))
        .map_err(Stopped::LeftOut)?
        .join("usr/bin/qemu-aarch64");
    let names = CRATES.iter().map(|name| format!("-p brigade-{name}"));
    let names: Vec<String> = names.collect();
    let build = format!("test {} --lib --no-run --message-format json", names.join(" "));
    let executables = built(&toolchain.cargo(&build).output().map_err(Stopped::Failed)?);
    let place = "aarch64, emulated, pages of 4 KiB".to_owned();
    let mut counts = Counts { place, ..Counts::default() };
    for executable in executables.iter().filter(|executable| executable.is_test) {
        let skips = LEFT_OUT.iter().flat_map(|(pattern, _)| ["--skip", pattern]);
        let test = Invocation::program(&emulator)
            .arguments(["-L", "/usr/aarch64-linux-gnu"].map(str::to_owned))
            .arguments([executable.path.display().to_string()])
            .arguments(["--test-threads", "2"].map(str::to_owned))
            .arguments(skips.map(str::to_owned))
            .folder(&executable.package)
            // The cases of properties take a hundred times as long.
            .variable("PROPTEST_CASES", "16");
        let name = executable.name();
        let (output, has_succeeded) = test.tested().map_err(Stopped::Failed)?;
        let before = counts.failed.len();
        executables::count(&mut counts, &name, &output, has_succeeded);
        if counts.failed.len() > before {
            println!("{output}");
        }
    }
    counts.left_out.extend(LEFT_OUT);
    println!("{}", counts.line());
    Ok(vec![counts])
}
