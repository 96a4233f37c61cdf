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
const ROOT: [&str; 14] = [
    "bash",
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

/// Tests that do not hold in such a machine, by the name of their executable.
const LEFT_OUT: [(&str, &str); 1] = [("ui", "it runs the compiler")];

/// Lines of `init` around the output of a program.
const BEGIN: &str = "@@ begin ";
const END: &str = "@@ end ";

pub(super) fn with_pages_of_4_kib() -> Result<Vec<Counts>, Stopped> {
    run("arm64", "aarch64, virtual machine, pages of 4 KiB")
}

pub(super) fn with_pages_of_16_kib() -> Result<Vec<Counts>, Stopped> {
    run("arm64-16k", "aarch64, virtual machine, pages of 16 KiB")
}

fn run(flavor: &str, place: &str) -> Result<Vec<Counts>, Stopped> {
    let toolchain = toolchain::aarch64().map_err(Stopped::LeftOut)?;
    let programs = [QEMU, ("cpio", "cpio")];
    install(&programs).map_err(Stopped::LeftOut)?;
    let packages = Packages::open(Release::Next).map_err(Stopped::LeftOut)?;
    let kernel = kernel(&packages, flavor).map_err(Stopped::LeftOut)?;
    let root = packages.unpack_root("root", &ROOT).map_err(Stopped::LeftOut)?;
    let names = CRATES.map(|name| format!("-p brigade-{name}")).join(" ");
    let build = format!("test {names} --lib --bins --tests --no-run --message-format json");
    let executables = built(&toolchain.cargo(&build).output().map_err(Stopped::Failed)?);
    let image = image(&root, &executables).map_err(Stopped::Failed)?;
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
fn image(root: &Path, executables: &[Executable]) -> Result<PathBuf, String> {
    let layer = folder()?.join("layer");
    let _ = fs::remove_dir_all(&layer);
    packages::make(&layer)?;
    let mut lines = Vec::new();
    for executable in executables {
        let inside = |path: &Path| layer.join(path.strip_prefix("/").unwrap_or(path));
        let path = inside(&executable.path);
        packages::make(path.parent().unwrap_or(&layer))?;
        packages::make(&inside(&executable.package))?;
        // Names of functions stay, for the tests of crash reports.
        let strip = ["--strip-debug", "-o"].map(str::to_owned).into_iter();
        Invocation::program(Path::new("aarch64-linux-gnu-strip"))
            .arguments(strip)
            .arguments([path.display().to_string(), executable.path.display().to_string()])
            .run()?;
        if executable.is_test && !LEFT_OUT.iter().any(|(left, _)| *left == executable.name()) {
            let (name, package) = (executable.name(), executable.package.display().to_string());
            let run = if package.ends_with("integration") { "each" } else { "run" };
            lines.push(format!("{run} {name} {package} {}", executable.path.display()));
        }
    }
    let order = executables.iter().filter(|it| !it.is_test && it.name() == "stress");
    for stress in order {
        // The link is chosen by the seed.
        lines.push(format!("stress {}", stress.path.display()));
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

/// Starts the machine, and reads what it prints until it is off.
fn boot(kernel: &Path, image: &Path, counts: &mut Counts) -> Result<(), String> {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let line = format!(
        "-M virt -cpu max,pauth-impdef=on -accel tcg,thread=multi -smp {cores} -m 6000 -nographic \
         -nic none -no-reboot"
    );
    let mut machine = Command::new(QEMU.0);
    machine.args(line.split_whitespace()).arg("-kernel").arg(kernel).arg("-initrd").arg(image);
    machine.args(["-append", "console=ttyAMA0 quiet panic=-1"]);
    machine.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut machine =
        machine.spawn().map_err(|error| format!("cannot start {}: {error}", QEMU.0))?;
    let Some(output) = machine.stdout.take() else { return Err("no output".to_owned()) };
    let mut printed = String::new();
    let mut is_over = false;
    for line in BufReader::new(output).lines() {
        let line = line.map_err(|error| format!("cannot read what the machine prints: {error}"))?;
        let line = line.trim_end();
        if let Some(what) = line.strip_prefix("@@ machine: ") {
            println!("machine: {what}");
        } else if line.starts_with(BEGIN) {
            printed.clear();
        } else if let Some(end) = line.strip_prefix(END) {
            let (name, code) = end.split_once(' ').unwrap_or((end, "?"));
            let before = (counts.passed, counts.failed.len());
            executables::count(counts, name, &printed, code == "0");
            let failed = counts.failed.len() - before.1;
            println!("{name}: {} passed, {failed} failed", counts.passed - before.0);
            if failed > 0 {
                println!("{printed}");
            }
        } else if line == "@@ over" {
            is_over = true;
        } else {
            printed += line;
            printed.push('\n');
        }
    }
    let _ = machine.wait();
    if is_over { Ok(()) } else { Err(format!("the machine ended before its tests:\n{printed}")) }
}
