//! Runs tests for ARM in a virtual machine, with one of Debian's kernels: processes, descriptors,
//! pages, timers and both links are those of a real system. Its processor is emulated, in the order
//! of memory that this one has.
//!
//! The machine has no disk: its kernel unpacks a file with Debian's programs, the tests, and an
//! `init` that runs them one after the other and prints what they print.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::executables::{self, Executable, built};
use super::packages::{self, Packages, Release};
use super::{Counts, Stopped, folder, install, toolchain};
use crate::invocation::Invocation;

/// The emulator of machines, and its package.
const QEMU: (&str, &str) = ("qemu-system-aarch64", "qemu-system-arm");

/// The packages of the machine.
const ROOT: [&str; 15] = [
    "bash",
    "bsdutils",
    "busybox-static",
    "coreutils",
    "dash",
    "findutils",
    "grep",
    "libc-bin",
    "libgcc-s1",
    "mawk",
    "mount",
    "perl-base",
    "procps",
    "sed",
    "util-linux",
];

/// The crates whose tests run.
const CRATES: [&str; 12] = [
    "cores",
    "crash",
    "integration",
    "link-ipc",
    "pool",
    "sandbox",
    "supervisor",
    "sys",
    "task",
    "timer",
    "wire",
    "worker",
];

/// Tests that do not hold in such a machine. The name of a test follows that of its executable.
const LEFT_OUT: [(&str, &str); 6] = [
    ("pool: ui::", "it runs the compiler"),
    ("cores: drawing::", "it compares a document"),
    ("processes: crashes::a_crash_in_a_library_that_only", "it runs a compiler of C"),
    ("brigade_sys: sweep::tests::a_process_that_is_just_executing", SEGMENTS),
    ("brigade_sys: sweep::tests::the_environment_of_an_executing", SEGMENTS),
    ("tasks: deadlines::the_next_task_does_not_wait_for_a_killed", FREED),
];

const SEGMENTS: &str = "this kernel allows only as many segments as are described in a page";

const FREED: &str = "the emulator runs one processor at a time, and the killed process ends first";

/// Executables that keep the lines of their source, because their tests look for them, or for
/// functions that the compiler puts into others.
const WITH_LINES: [&str; 2] = ["processes", "sample"];

/// A test of this crate looks for a function that an optimized program has left already.
const WHOLE: &str = "--config profile.dev.package.brigade-crash.opt-level=0";

/// An executable, and the beginnings of the names of its tests that run: all if there are none.
type Chosen = (&'static str, &'static [&'static str]);

/// Executables that run with pages of 4 KiB, too, those with tests of memory, of what surrounds a
/// process, and of a pool as a whole.
const ALSO_WITH_4_KIB: [Chosen; 11] = [
    ("brigade_crash", &[]),
    ("brigade_sys", &[]),
    ("brigade_wire", &[]),
    ("early", &[]),
    ("fuzz", &[]),
    ("link_conformance", &[]),
    ("memory", &["buffers::", "payloads::", "shared_memory::"]),
    ("processes", &["confined::", "limits::", "sandbox::"]),
    ("sample", &[]),
    ("stress", &[]),
    ("without_init", &["leaks::", "terminal::", "undisturbed::"]),
];

/// Seconds of the machine for an executable, and for one whose tests have a process each.
const LIMIT: u32 = 900;
const LIMIT_OF_MANY: u32 = 7200;

/// Seconds of this machine for all of them.
const LIMIT_OF_ALL: &str = "14400";

/// The machine's time: two nanoseconds for an instruction, and none while both processors wait. So
/// it does not matter how slow the emulator is, and what else this machine does. It takes turns
/// between the processors.
const CLOCK: &str = "-accel tcg,thread=single -icount shift=1,sleep=off";

/// Programs that take random decisions, and their arguments.
const SEEDED: [(&str, &str); 3] = [
    ("stress", "--seed 1 --seconds 30"),
    ("fuzz", "--seed 1 --rounds 4"),
    ("fuzz", "--hostile --seed 1 --rounds 2"),
];

/// Lines of `init` around the output of a program.
const BEGIN: &str = "@@ begin ";
const END: &str = "@@ end ";

pub(super) fn with_pages_of_4_kib() -> Result<Vec<Counts>, Stopped> {
    run("arm64", "aarch64, virtual machine, pages of 4 KiB", &ALSO_WITH_4_KIB)
}

pub(super) fn with_pages_of_16_kib() -> Result<Vec<Counts>, Stopped> {
    run("arm64-16k", "aarch64, virtual machine, pages of 16 KiB", &[])
}

/// Runs the tests of these executables, or of all if there are none.
fn run(flavor: &str, place: &str, only: &[Chosen]) -> Result<Vec<Counts>, Stopped> {
    let toolchain = toolchain::aarch64().map_err(Stopped::LeftOut)?;
    let programs = [QEMU, ("cpio", "cpio")];
    install(&programs).map_err(Stopped::LeftOut)?;
    let packages = Packages::open(Release::Next).map_err(Stopped::LeftOut)?;
    let kernel = kernel(&packages, flavor).map_err(Stopped::LeftOut)?;
    let root = packages.unpack_root("root", &ROOT).map_err(Stopped::LeftOut)?;
    let names = CRATES.map(|name| format!("-p brigade-{name}")).join(" ");
    let build = format!("test {names} {WHOLE} --tests --no-run --message-format json");
    let executables = built(&toolchain.cargo(&build).output().map_err(Stopped::Failed)?);
    let image = image(&root, &executables, only).map_err(Stopped::Failed)?;
    let mut counts = Counts { place: place.to_owned(), ..Counts::default() };
    boot(&kernel, &image, &mut counts).map_err(Stopped::Failed)?;
    counts.left_out.extend(LEFT_OUT);
    Ok(vec![counts])
}

/// Unpacks a kernel, and returns the path of its image.
fn kernel(packages: &Packages, flavor: &str) -> Result<PathBuf, String> {
    let meta = format!("linux-image-{flavor}:arm64");
    let package = packages.dependency(&meta, "linux-image-")?;
    let unpacked = packages.unpack(&format!("kernel-{flavor}"), &[&package])?;
    let boot = unpacked.join("boot");
    let entries =
        fs::read_dir(&boot).map_err(|error| format!("cannot read {}: {error}", boot.display()))?;
    let mut paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    paths
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vml")))
        .ok_or_else(|| format!("the package {package} has no kernel"))
}

/// Writes what the kernel unpacks: the programs, and then the tests, at their paths here.
fn image(root: &Path, executables: &[Executable], only: &[Chosen]) -> Result<PathBuf, String> {
    let layer = folder()?.join("layer");
    let _ = fs::remove_dir_all(&layer);
    packages::make(&layer)?;
    for executable in executables {
        let inside = |path: &Path| layer.join(path.strip_prefix("/").unwrap_or(path));
        let path = inside(&executable.path);
        packages::make(path.parent().unwrap_or(&layer))?;
        packages::make(&inside(&executable.package))?;
        if WITH_LINES.contains(&executable.name().as_str()) {
            fs::copy(&executable.path, &path)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            continue;
        }
        // Names of functions stay, for the tests of crash reports.
        let strip = ["--strip-debug", "-o"].map(str::to_owned).into_iter();
        Invocation::program(Path::new("aarch64-linux-gnu-strip"))
            .arguments(strip)
            .arguments([path.display().to_string(), executable.path.display().to_string()])
            .run()?;
    }
    let tests = |name: &str| match only.iter().find(|(it, _)| *it == name) {
        Some((_, tests)) => Some(*tests),
        None => only.is_empty().then_some(&[][..]),
    };
    let chosen = executables.iter().filter_map(|it| Some((it, tests(&it.name())?)));
    let mut chosen: Vec<_> = chosen.collect();
    // Those of single crates come first, and programs last.
    chosen.sort_by_key(|(it, _)| (!it.is_test, is_of_integration(it), it.name()));
    let mut lines: Vec<String> =
        chosen.into_iter().flat_map(|(it, tests)| order(it, tests)).collect();
    if let Some(tasks) = lines.iter().find(|line| line.contains(" tasks ")) {
        let over_ipc =
            format!("export BRIGADE_LINK=ipc\n{}", tasks.replace(" tasks ", " tasks_over_ipc "));
        lines.push(over_ipc);
    }
    packages::write(&layer.join("order"), &(lines.join("\n") + "\n"))?;
    let init = layer.join("init");
    packages::write_script(&init, include_str!("init.sh"))?;
    let image = folder()?.join("image.cpio");
    // A kernel unpacks several archives one after the other.
    let script = "for folder in \"$1\" \"$2\"; do \
                  (cd \"$folder\" && find . | cpio --quiet -o -H newc) || exit 1; done > \"$0\"";
    let paths = [&image, &root.to_owned(), &layer].map(|path| path.display().to_string());
    let arguments = ["-c".to_owned(), script.to_owned()].into_iter().chain(paths);
    Invocation::program(Path::new("sh")).arguments(arguments).run()?;
    let _ = fs::remove_dir_all(&layer);
    Ok(image)
}

/// Returns the lines of `init` that run these tests of an executable, or all if there are none.
fn order(executable: &Executable, tests: &[&str]) -> Vec<String> {
    let (name, path) = (executable.name(), executable.path.display());
    let package = executable.package.display();
    if !executable.is_test {
        let seeded = SEEDED.iter().filter(|(program, _)| *program == name);
        let line =
            |(_, arguments): &(&str, &str)| format!("whole {LIMIT} {name} /tmp {path} {arguments}");
        return seeded.map(line).collect();
    }
    let patterns: Vec<&str> = executables::left_out(&LEFT_OUT, &name).collect();
    if patterns.contains(&"") {
        return Vec::new();
    }
    let skips = patterns.iter().flat_map(|pattern| [" --skip ", pattern]);
    let skips: String = tests.iter().flat_map(|test| [" ", test]).chain(skips).collect();
    if !is_of_integration(executable) {
        return vec![format!("together {LIMIT} {name} {package} {path}{skips}")];
    }
    vec![format!("each {LIMIT_OF_MANY} {name} {package} {path}{skips}")]
}

fn is_of_integration(executable: &Executable) -> bool {
    executable.package.ends_with("integration")
}

/// Starts the machine, and prints and counts what it prints until it is off.
fn boot(kernel: &Path, image: &Path, counts: &mut Counts) -> Result<(), String> {
    let line = format!(
        "{LIMIT_OF_ALL} {} -M virt -cpu max,pauth-impdef=on {CLOCK} -smp 2 -m 6000 -nographic \
         -nic none -no-reboot",
        QEMU.0
    );
    let mut machine = Command::new("timeout");
    machine.args(line.split_whitespace()).arg("-kernel").arg(kernel).arg("-initrd").arg(image);
    machine.args(["-append", "console=ttyAMA0 quiet panic=-1"]);
    machine.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut machine =
        machine.spawn().map_err(|error| format!("cannot start {}: {error}", QEMU.0))?;
    let Some(output) = machine.stdout.take() else { return Err("no output".to_owned()) };
    let mut printed = String::new();
    let mut is_over = false;
    // A test may print anything.
    for line in BufReader::new(output).split(b'\n') {
        let line = line.map_err(|error| format!("cannot read what the machine prints: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        println!("{line}");
        if line.starts_with(BEGIN) {
            printed.clear();
        } else if let Some(end) = line.strip_prefix(END) {
            let mut words = end.split(' ');
            let (name, code) = (words.next().unwrap_or_default(), words.next());
            let before = (counts.passed, counts.failed.len());
            executables::count(counts, name, &printed, code == Some("0"));
            let failed = counts.failed.len() - before.1;
            println!("{name}: {} passed, {failed} failed", counts.passed - before.0);
        } else if line == "@@ over" {
            is_over = true;
        } else {
            printed += line;
            printed.push('\n');
        }
    }
    let _ = machine.wait();
    if !is_over {
        counts.failed.push("the machine ended before its tests".to_owned());
    }
    Ok(())
}
