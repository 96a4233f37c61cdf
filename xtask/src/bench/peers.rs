//! Getting the peers that do not come with Python: a virtual environment and one program, both
//! below the target folder.
//!
//! A peer that cannot be had costs only itself: it is reported as not measured.

use std::path::Path;
use std::process::{Command, Stdio};

use super::target;
use crate::checkout;
use crate::invocation::Invocation;

const REQUIREMENTS: &str = "benches/peers/requirements.txt";
const PROCSPAWN: &str = "benches/peers/procspawn/Cargo.toml";

/// What `compare` has to be told about them.
pub(super) fn install() -> Vec<String> {
    let mut arguments = vec!["--peers".to_owned()];
    let environment = checkout::root().join(target()).join("bench-venv");
    match install_packages(&environment) {
        Ok(python) => arguments.extend(["--python".to_owned(), python]),
        Err(problem) => println!("the peers in Python cannot be had: {problem}"),
    }
    let build = checkout::root().join(target()).join("bench-procspawn");
    let outcome = Invocation::cargo("build --release --locked --manifest-path")
        .arguments([PROCSPAWN.to_owned(), "--target-dir".to_owned(), build.display().to_string()])
        .run();
    match outcome {
        Ok(()) => {
            let program = build.join("release/procspawn-peer").display().to_string();
            arguments.extend(["--procspawn".to_owned(), program]);
        }
        Err(problem) => println!("procspawn cannot be had: {problem}"),
    }
    arguments
}

/// Makes the environment unless it is there, and installs what it lacks; gives its Python.
fn install_packages(environment: &Path) -> Result<String, String> {
    let python = environment.join("bin/python");
    if !python.exists() {
        let folder = environment.display().to_string();
        succeed(Command::new("python3").args(["-m", "venv", &folder]))?;
    }
    let list = std::fs::read_to_string(checkout::root().join(REQUIREMENTS))
        .map_err(|error| format!("{REQUIREMENTS}: {error}"))?;
    for package in packages(&list) {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]);
        if let Err(problem) = succeed(&mut pip) {
            println!("{package} cannot be had: {problem}");
        }
    }
    Ok(python.display().to_string())
}

fn packages(list: &str) -> impl Iterator<Item = &str> {
    list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

#[cfg(test)]
mod tests {
    use super::{PROCSPAWN, REQUIREMENTS, packages};
    use crate::checkout;

    #[test]
    fn comments_are_no_packages() {
        assert_eq!(packages("# why\n\na==1\n b==2 \n").collect::<Vec<_>>(), ["a==1", "b==2"]);
    }

    #[test]
    fn what_is_installed_is_pinned_and_there() {
        let root = checkout::root();
        let list = std::fs::read_to_string(root.join(REQUIREMENTS)).unwrap();
        assert!(packages(&list).all(|package| package.contains("==")));
        assert!(root.join(PROCSPAWN).with_file_name("Cargo.lock").exists());
    }
}
