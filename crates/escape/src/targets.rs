//! The targets of attempts.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The targets of attempts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Targets {
    /// A folder that the sandbox leaves closed.
    pub(crate) outside: String,
    /// A file in it.
    pub(crate) secret: String,
    /// A folder that the sandbox allows to write to.
    pub(crate) allowed: String,
    /// A file that the sandbox allows to read.
    pub(crate) readable: String,
    /// A module whose debug information is, so it says, in the file `pipe`.
    pub(crate) module: String,
    /// A pipe to which nobody writes. Whoever opens it waits.
    pub(crate) pipe: String,
    /// The host.
    pub(crate) host: u32,
    /// The address of a secret in its memory.
    pub(crate) address: u64,
    /// A worker of another pool.
    pub(crate) sibling: u32,
}

/// The content of the secret file, of the host's memory, and of another task's argument.
pub(crate) const SECRET: &str = "the treasure is below the third palm tree";

/// The variable of the host's environment that has the secret.
pub(crate) const SECRET_VARIABLE: &str = "ESCAPE_SECRET";

impl Targets {
    /// Makes the files of an attempt below a folder.
    pub(crate) fn make(folder: &Path, host_secret: &str, sibling: u32) -> std::io::Result<Self> {
        let path = |name: &str| folder.join(name).display().to_string();
        let targets = Self {
            outside: path("outside"),
            secret: path("outside/secret"),
            allowed: path("allowed"),
            readable: path("readable"),
            module: path("module.so"),
            pipe: path("module.dwo"),
            host: std::process::id(),
            address: host_secret.as_ptr().expose_provenance() as u64,
            sibling,
        };
        fs::create_dir_all(&targets.outside)?;
        fs::create_dir_all(&targets.allowed)?;
        fs::write(&targets.secret, SECRET)?;
        fs::write(&targets.readable, "harmless")?;
        make_module(folder)?;
        Ok(targets)
    }

    /// Returns what has changed that must not.
    pub(crate) fn damage(&self) -> Option<String> {
        let names = fs::read_dir(&self.outside).into_iter().flatten().flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        let secret = fs::read_to_string(&self.secret);
        if secret.as_deref().ok() != Some(SECRET) {
            return Some(format!("the secret file is now {secret:?}"));
        }
        if fs::read_to_string(&self.readable).ok().as_deref() != Some("harmless") {
            return Some("the file that may only be read has changed".to_owned());
        }
        (names != ["secret"]).then(|| format!("the folder outside has {names:?}"))
    }
}

/// Compiles a module that crashes, and puts a pipe where it says that its debug information is.
fn make_module(folder: &Path) -> std::io::Result<()> {
    fs::write(folder.join("module.c"), "char decode(char *at) { return *at; }\n")?;
    for line in [
        "cc -c -g -gsplit-dwarf -fPIC -o module.o module.c",
        "cc -shared -o module.so module.o",
        "rm module.dwo",
        "mkfifo module.dwo",
    ] {
        let status = Command::new("sh").args(["-c", line]).current_dir(folder).status()?;
        if !status.success() {
            return Err(std::io::Error::other(format!("{line:?} failed")));
        }
    }
    Ok(())
}
