//! Installs the peers that do not come with Python, and this program without the recording of
//! metrics, all below the target folder.
//!
//! A peer whose installation fails is reported as not measured; the others are not affected.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use brigade_sys::process::command;

use crate::arguments::Arguments;
use crate::folders;
use crate::report::Outcome;

/// Installs the peers unless `arguments` name programs for them, and stores the programs there.
pub(crate) fn install(arguments: &mut Arguments) {
    if arguments.python.is_none() {
        arguments.python = reported("install the Python peers", install_packages());
    }
    if arguments.procspawn.is_none() {
        arguments.procspawn = reported("build procspawn", build("procspawn"));
    }
    if arguments.iceoryx2.is_none() {
        arguments.iceoryx2 = reported("build iceoryx2", build("iceoryx2"));
    }
    if arguments.unrecorded.is_none() {
        arguments.unrecorded = reported("build a pool without metrics", build_unrecorded());
    }
}

/// Returns the value, or prints the error.
fn reported<T>(action: &str, outcome: Outcome<T>) -> Option<T> {
    outcome.map_err(|error| eprintln!("cannot {action}: {error}")).ok()
}

/// Creates the environment if necessary, installs missing packages, and returns its Python.
fn install_packages() -> Outcome<PathBuf> {
    let environment = folders::target().join("bench-venv");
    let python = environment.join("bin/python");
    if !python.exists() {
        run(Path::new("python3"), &["-m", "venv", &environment.display().to_string()])?;
    }
    for package in packages(&fs::read_to_string(requirements())?) {
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package];
        reported(&format!("install {package}"), run(&python, &pip));
    }
    Ok(python)
}

/// Builds the program of a peer, and returns its path.
fn build(peer: &str) -> Outcome<PathBuf> {
    let manifest = folders::peers().join(peer).join("Cargo.toml");
    let target = build_with(peer, &["--manifest-path", &manifest.display().to_string()])?;
    Ok(target.join(format!("{peer}-peer")))
}

/// Builds this program with pools that record nothing, and returns its path.
fn build_unrecorded() -> Outcome<PathBuf> {
    let settings =
        ["--package", env!("CARGO_PKG_NAME"), "--bin", "compare", "--no-default-features"];
    Ok(build_with("unrecorded", &settings)?.join("compare"))
}

/// Builds into a target folder of its own, and returns the folder with the program.
fn build_with(name: &str, settings: &[&str]) -> Outcome<PathBuf> {
    let target = folders::target().join(format!("bench-{name}"));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let folder = target.display().to_string();
    let mut arguments = vec!["build", "--release", "--locked", "--target-dir", &folder];
    arguments.extend(settings);
    run(Path::new(&cargo), &arguments)?;
    Ok(target.join("release"))
}

fn requirements() -> PathBuf {
    folders::peers().join("requirements.txt")
}

fn packages(list: &str) -> impl Iterator<Item = &str> {
    list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn run(program: &Path, arguments: &[&str]) -> Outcome<()> {
    let line = format!("{} {}", program.display(), arguments.join(" "));
    let mut command = command(program);
    command.args(arguments).stdin(Stdio::null()).current_dir(folders::root());
    let status = command.status().map_err(|error| format!("{line}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{line}: {status}").into()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{packages, requirements};
    use crate::folders;

    #[test]
    fn comments_are_skipped() {
        assert_eq!(packages("# why\n\na==1\n b==2 \n").collect::<Vec<_>>(), ["a==1", "b==2"]);
    }

    #[test]
    fn versions_of_peers_are_pinned() {
        let list = fs::read_to_string(requirements()).unwrap();
        assert!(packages(&list).all(|package| package.contains("==")));
        for peer in ["procspawn", "iceoryx2"] {
            assert!(folders::peers().join(peer).join("Cargo.lock").exists());
        }
    }
}
