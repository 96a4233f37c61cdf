//! `cargo xtask escape`: tries to escape from the sandbox of a worker, over both links, as this
//! user and as one without rights, with namespaces and without.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::checkout::target_folder;
use crate::invocation::Invocation;
use crate::tools::is_root;

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if !arguments.is_empty() {
        return Err("`cargo xtask escape` takes no arguments".to_owned());
    }
    Invocation::cargo("build -p brigade-escape").run()?;
    escape("", true)?;
    Ok(ExitCode::SUCCESS)
}

/// Makes brief attempts with the program, as it was built with its tests; without `everything`, as
/// each user over one link, with namespaces.
pub(crate) fn check(everything: bool) -> Result<(), String> {
    escape("--brief", everything)
}

fn escape(how: &str, everything: bool) -> Result<(), String> {
    let copy = Copy::make(&target_folder().join("debug/brigade-escape"))?;
    let users: &[&str] = if is_root() { &["", "--as-nobody"] } else { &[""] };
    for (index, user) in users.iter().copied().enumerate() {
        // Each user and each link with namespaces once.
        for (link, is_isolated) in [("ring", index == 0), ("ipc", index == 1)] {
            if !everything && !is_isolated && users.len() > 1 {
                continue;
            }
            let isolate = if is_isolated { "--isolate" } else { "" };
            let arguments = ["--link", link, user, isolate, how].into_iter();
            let arguments = arguments.filter(|it| !it.is_empty());
            let attempts = Invocation::program(&copy.program);
            let attempts = attempts.arguments(arguments.map(ToOwned::to_owned));
            println!("{attempts}");
            attempts.run()?;
        }
    }
    Ok(())
}

/// A copy of the program, where another user may execute it.
struct Copy {
    folder: PathBuf,
    program: PathBuf,
}

impl Copy {
    fn make(program: &Path) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("brigade-escape-{}", std::process::id()));
        let copy = Self { program: folder.join("brigade-escape"), folder };
        let made = fs::create_dir(&copy.folder)
            .and_then(|()| fs::set_permissions(&copy.folder, fs::Permissions::from_mode(0o755)))
            .and_then(|()| fs::copy(program, &copy.program));
        made.map_err(|error| format!("cannot copy {}: {error}", program.display()))?;
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // It is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
