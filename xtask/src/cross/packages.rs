//! Packages of Debian that are unpacked into a folder of their own, and change nothing else on the
//! machine: a compiler, emulators, kernels, and the root of a virtual machine.
//!
//! Compilers are those of this machine's release, because they use its libraries. Emulators and
//! kernels are those of the next one, which has newer ones, and kernels with larger pages.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::folder;
use crate::invocation::Invocation;

/// A release of Debian, and the next one.
const RELEASES: [(&str, &str); 2] = [("bookworm", "trixie"), ("trixie", "forky")];

/// Folders of the system with the sources of packages.
const SOURCES: &str = "/etc/apt/sources.list.d";

/// The release of the packages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Release {
    This,
    Next,
}

/// Reads and unpacks packages.
pub(super) struct Packages {
    folder: PathBuf,
}

impl Packages {
    /// Reads the lists of packages.
    pub(super) fn open(release: Release) -> Result<Self, String> {
        let name = if release == Release::This { "this" } else { "next" };
        let packages = Self { folder: folder()?.join("packages").join(name) };
        for part in ["sources", "lists/partial", "cache/archives/partial", "unpacked"] {
            make(&packages.folder.join(part))?;
        }
        if !packages.write_sources(release)? {
            return Err(format!("there are no sources of Debian's packages in {SOURCES}"));
        }
        packages.apt("get", "update --quiet").output()?;
        Ok(packages)
    }

    /// Unpacks packages into the folder `name`, without those that they depend on.
    pub(super) fn unpack(&self, name: &str, packages: &[&str]) -> Result<PathBuf, String> {
        self.once(name, &packages.join(" "), |archives| {
            let download = self.apt("get", "download --quiet").folder(archives);
            download.arguments(packages.iter().map(|&package| package.to_owned())).output()
        })
    }

    /// Unpacks packages for ARM into the folder `name`, with all that they depend on.
    pub(super) fn unpack_root(&self, name: &str, packages: &[&str]) -> Result<PathBuf, String> {
        self.once(name, &packages.join(" "), |archives| {
            // As for a machine on which nothing is installed yet.
            let options = "-o Dir::State::status=/dev/null -o APT::Architecture=arm64";
            let flags = "--quiet --yes --no-install-recommends --download-only";
            self.apt("get", &format!("{options} -o Dir::Cache::archives={}", archives.display()))
                .arguments(format!("{flags} install").split(' ').map(str::to_owned))
                .arguments(packages.iter().map(|&package| package.to_owned()))
                .output()
        })
    }

    /// Returns the first package with this prefix that a package depends on.
    pub(super) fn dependency(&self, package: &str, prefix: &str) -> Result<String, String> {
        let listed = self.apt("cache", "depends").arguments([package.to_owned()]).output()?;
        let names = listed.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        let found = names.into_iter().find(|name| name.starts_with(prefix));
        found.map(str::to_owned).ok_or_else(|| {
            format!("the package {package} depends on none whose name begins with {prefix}")
        })
    }

    /// Downloads into an empty folder and unpacks all of it, unless that was done before.
    fn once(
        &self,
        name: &str,
        content: &str,
        download: impl FnOnce(&Path) -> Result<String, String>,
    ) -> Result<PathBuf, String> {
        let unpacked = self.folder.join("unpacked").join(name);
        let done = self.folder.join(format!("unpacked/{name}.txt"));
        if fs::read_to_string(&done).is_ok_and(|before| before == content) {
            return Ok(unpacked);
        }
        let archives = self.folder.join(name);
        for emptied in [&unpacked, &archives] {
            let _ = fs::remove_dir_all(emptied);
            make(emptied)?;
        }
        make(&archives.join("partial"))?;
        // Packages name the folders in which others of them only have links.
        for folder in ["bin", "sbin", "lib"] {
            make(&unpacked.join("usr").join(folder))?;
            std::os::unix::fs::symlink(format!("usr/{folder}"), unpacked.join(folder)).map_err(
                |error| format!("cannot make a link in {}: {error}", unpacked.display()),
            )?;
        }
        download(&archives)?;
        let entries = fs::read_dir(&archives)
            .map_err(|error| format!("cannot read {}: {error}", archives.display()))?;
        let files = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        for file in files.filter(|file| file.extension().is_some_and(|it| it == "deb")) {
            // Like `dpkg -x`, but it keeps the links above.
            let tar = Invocation::program(Path::new("sh")).arguments([
                "-c".to_owned(),
                "dpkg-deb --fsys-tarfile \"$0\" | tar -x --keep-directory-symlink -C \"$1\""
                    .to_owned(),
                file.display().to_string(),
                unpacked.display().to_string(),
            ]);
            tar.run()?;
        }
        let _ = fs::remove_dir_all(&archives);
        write(&done, content)?;
        Ok(unpacked)
    }

    fn apt(&self, tool: &str, arguments: &str) -> Invocation {
        let path = |part: &str| self.folder.join(part).display().to_string();
        let options = [
            ("Dir::State::Lists", path("lists")),
            ("Dir::Cache", path("cache")),
            ("Dir::Etc::SourceList", "/dev/null".to_owned()),
            ("Dir::Etc::SourceParts", path("sources")),
            ("APT::Architectures::", "amd64".to_owned()),
            ("APT::Architectures::", "arm64".to_owned()),
            ("APT::Sandbox::User", "root".to_owned()),
        ];
        let options = options
            .into_iter()
            .flat_map(|(name, value)| ["-o".to_owned(), format!("{name}={value}")]);
        Invocation::program(Path::new(&format!("apt-{tool}")))
            .arguments(options)
            .arguments(arguments.split_whitespace().map(str::to_owned))
    }

    /// Copies the system's sources, with the next release added if it is wanted. Returns `false` if
    /// there are none.
    fn write_sources(&self, release: Release) -> Result<bool, String> {
        let Ok(entries) = fs::read_dir(SOURCES) else { return Ok(false) };
        let mut has_any = false;
        for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
            let is_source = path.extension().is_some_and(|extension| extension == "sources");
            let Ok(text) = fs::read_to_string(&path) else { continue };
            if let (true, Some(name)) = (is_source, path.file_name()) {
                let Some(with_next) = with_next_release(&text) else { continue };
                let text = if release == Release::Next { with_next } else { text };
                write(&self.folder.join("sources").join(name), &text)?;
                has_any = true;
            }
        }
        Ok(has_any)
    }
}

/// Adds the next release to a list of sources, which is `None` if it has no known release.
fn with_next_release(sources: &str) -> Option<String> {
    let mut is_known = false;
    let lines = sources.lines().map(|line| {
        let Some(suites) = line.strip_prefix("Suites:") else { return line.to_owned() };
        let mut suites: Vec<&str> = suites.split_whitespace().collect();
        let next = RELEASES.into_iter().find(|(this, _)| suites.contains(this));
        is_known |= suites
            .iter()
            .any(|suite| RELEASES.into_iter().any(|(this, _)| suite.starts_with(this)));
        suites.extend(next.map(|(_, next)| next));
        format!("Suites: {}", suites.join(" "))
    });
    let text: Vec<String> = lines.collect();
    is_known.then(|| text.join("\n") + "\n")
}

pub(super) fn make(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Writes a file that can be executed.
pub(super) fn write_script(path: &Path, text: &str) -> Result<(), String> {
    write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("cannot make {} executable: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::with_next_release;

    #[test]
    fn the_next_release_is_added_where_this_one_is() {
        let sources = "Types: deb\nSuites: bookworm bookworm-updates\nComponents: main\n\n\
                       Types: deb\nSuites: bookworm-security\n";
        assert_eq!(
            with_next_release(sources).unwrap(),
            "Types: deb\nSuites: bookworm bookworm-updates trixie\nComponents: main\n\n\
             Types: deb\nSuites: bookworm-security\n"
        );
        assert_eq!(with_next_release("Types: deb\nSuites: nodistro\n"), None);
    }
}
