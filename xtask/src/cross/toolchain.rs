//! Compilers for other targets: the pinned one if it has the standard library of a target, and
//! otherwise the one that Debian builds its browser with, which is newer.

use std::path::Path;

use super::packages::{self, Packages, Release};
use super::{folder, target};
use crate::invocation::Invocation;
use crate::tools::has_target;

/// Builds the standard library too, for targets for which nobody ships it.
const BUILD_STD: &str = "-Z build-std=std,panic_abort,panic_unwind,test";

/// A way to call cargo for a target.
#[derive(Clone)]
pub(super) struct Toolchain {
    target: &'static str,
    variables: Vec<(String, String)>,
    builds_std: bool,
}

impl Toolchain {
    /// Returns the toolchain for a target. `ships_std` tells that Debian has the standard library
    /// for it; otherwise that is built from its sources.
    pub(super) fn new(target: &'static str, ships_std: bool) -> Result<Self, String> {
        // Other flags and targets would invalidate the builds of the tests.
        let build = folder()?.join("build").display().to_string();
        let mut variables = vec![("CARGO_TARGET_DIR".to_owned(), build)];
        variables.push(("CARGO_INCREMENTAL".to_owned(), "0".to_owned()));
        if has_target(target) {
            return Ok(Self { target, variables, builds_std: false });
        }
        let compiler = debian()?;
        variables.push(("RUSTC".to_owned(), compiler));
        if !ships_std {
            variables.push(("RUSTC_BOOTSTRAP".to_owned(), "1".to_owned()));
        }
        Ok(Self { target, variables, builds_std: !ships_std })
    }

    /// Sets a variable of cargo's for this target, such as `LINKER`.
    pub(super) fn set(mut self, name: &str, value: &str) -> Self {
        let target = self.target.to_uppercase().replace('-', "_");
        self.variables.push((format!("CARGO_TARGET_{target}_{name}"), value.to_owned()));
        self
    }

    /// Sets the compiler of C.
    pub(super) fn set_cc(mut self, compiler: &str) -> Self {
        let name = format!("CC_{}", self.target.replace('-', "_"));
        self.variables.push((name, compiler.to_owned()));
        self
    }

    /// Returns a call of cargo for the target.
    pub(super) fn cargo(&self, arguments: &str) -> Invocation {
        let build_std = if self.builds_std { BUILD_STD } else { "" };
        let line = format!("{arguments} --locked {build_std} --target {}", self.target);
        let call = Invocation::cargo(&line);
        self.variables.iter().fold(call, |call, (name, value)| call.variable(name, value))
    }
}

/// Unpacks the compiler, and returns the path of a script that runs it.
fn debian() -> Result<String, String> {
    let script = folder()?.join("rustc");
    let packages = Packages::open(Release::This)?;
    let library = packages.dependency("libstd-rust-web-dev", "libstd-rust-web-")?;
    let llvm = packages.dependency(&library, "libllvm")?;
    let root = packages.unpack(
        "rust",
        &[
            "rustc-web",
            &llvm,
            &library,
            "libstd-rust-web-dev",
            "libstd-rust-web-dev:arm64",
            "rust-web-src",
        ],
    )?;
    let root = root.display();
    packages::write_script(
        &script,
        &format!(
            "#!/bin/sh\nLD_LIBRARY_PATH={root}/usr/lib/x86_64-linux-gnu exec {root}/usr/bin/rustc \"$@\"\n"
        ),
    )?;
    Ok(script.display().to_string())
}

/// Returns the toolchain for ARM with glibc.
pub(super) fn aarch64() -> Result<Toolchain, String> {
    const CC: &str = "aarch64-linux-gnu-gcc";
    super::install(&[(CC, "gcc-aarch64-linux-gnu libc6-dev-arm64-cross")])?;
    let mut toolchain = Toolchain::new(target::AARCH64, true)?.set("LINKER", CC).set_cc(CC);
    // Its tests run in emulators, which take several times as long for code as it is without any
    // optimization. Debug assertions stay.
    for (name, value) in [("BRIGADE_TEST_PATIENCE", "6"), ("CARGO_PROFILE_DEV_OPT_LEVEL", "1")] {
        toolchain.variables.push((name.to_owned(), value.to_owned()));
    }
    Ok(toolchain)
}

/// Returns the toolchain for static programs with musl.
pub(super) fn musl() -> Result<Toolchain, String> {
    super::install(&[("musl-gcc", "musl-tools")])?;
    let folder = folder()?.join("musl");
    packages::make(&folder)?;
    let (stub, script) = (folder.join("find.o"), folder.join("cc"));
    let code = folder.join("find.c");
    packages::write(&code, include_str!("find.c"))?;
    let compile =
        ["-c", &code.display().to_string(), "-o", &stub.display().to_string()].map(str::to_owned);
    Invocation::program(Path::new("musl-gcc")).arguments(compile).run()?;
    // The unwinder that the standard library asks for.
    packages::write(&folder.join("libunwind.a"), "GROUP ( -lgcc_eh -lgcc -lc )\n")?;
    // It names these weakly, so that a static program would do without them, and calls them.
    let weak = "-u pthread_once -u pthread_mutex_lock -u pthread_mutex_unlock \
                -u pthread_key_create -u pthread_getspecific -u pthread_setspecific";
    let linker = format!("#!/bin/sh\nexec musl-gcc \"$@\" {} {weak}\n", stub.display());
    packages::write_script(&script, &linker)?;
    let flags = format!(
        "-C link-self-contained=no -C relocation-model=static -C link-arg=-Wl,--build-id -L {}",
        folder.display()
    );
    let toolchain = Toolchain::new(target::MUSL, false)?;
    if !toolchain.builds_std {
        return Ok(toolchain);
    }
    let script = script.display().to_string();
    Ok(toolchain.set("LINKER", &script).set("RUSTFLAGS", &flags).set_cc("musl-gcc"))
}
