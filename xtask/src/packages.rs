//! Checks the number of packages that a user of the pool alone compiles, and that all packages can
//! be published.

use std::collections::BTreeSet;

use crate::invocation::Invocation;

/// Upper bound, the workspace's own packages included.
const MAX: usize = 33;

/// The packages that are never published.
const PRIVATE: [&str; 12] = [
    "brigade-benches",
    "brigade-escape",
    "brigade-example-cluster",
    "brigade-example-crash",
    "brigade-example-image-loader",
    "brigade-example-service",
    "brigade-integration",
    "brigade-scale",
    "brigade-testkit",
    "brigade-testkit-core",
    "brigade-testkit-sys",
    "xtask",
];

/// Returns the command that lists the packages. `resolution` is an option for cargo.
pub(crate) fn list(resolution: &str) -> Invocation {
    let tree = "tree -p brigade --no-default-features -e normal,build --prefix none";
    Invocation::cargo(&format!("{tree} {resolution}"))
}

/// Returns the command that makes the packages of everything that is published, as they would be
/// uploaded. They are not compiled: the other steps compile the same files.
pub(crate) fn package(resolution: &str) -> Invocation {
    // A dirty tree is checked like a clean one. Without `--offline`, cargo asks for newer versions,
    // and a machine without a network waits for many minutes.
    let package = "package --quiet --no-verify --allow-dirty --offline --workspace";
    let excluded = PRIVATE.map(|name| format!("--exclude {name}")).join(" ");
    Invocation::cargo(&format!("{package} {excluded} {resolution}"))
}

pub(crate) fn check(list: &Invocation) -> Result<(), String> {
    let tree = list.output()?;
    let packages = packages(&tree);
    println!("a user of the pool alone compiles {} packages", packages.len());
    if packages.len() <= MAX {
        return Ok(());
    }
    let names: Vec<&str> = packages.into_iter().collect();
    Err(format!(
        "`brigade` without its default features must need at most {MAX} packages, but needs {}:\n{}",
        names.len(),
        names.join("\n")
    ))
}

/// Returns the packages in the output of `cargo tree`, which marks repeated ones with `(*)`.
fn packages(tree: &str) -> BTreeSet<&str> {
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    lines.filter(|line| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::{PRIVATE, packages};
    use crate::checkout::Checkout;
    use crate::tidy::published;

    #[test]
    fn exactly_what_is_not_published_is_excluded() {
        let checkout = Checkout::read().unwrap();
        let published = published::names(&checkout);
        assert!(PRIVATE.iter().all(|name| !published.iter().any(|it| it == name)));
        assert_eq!(published.len() + PRIVATE.len(), checkout.manifests().count());
    }

    #[test]
    fn repeated_packages_count_once() {
        let tree = "a v1.0.0 (/a)\nb v1.0.0 (proc-macro)\n\nc v1.0.0\nb v1.0.0 (proc-macro) (*)\n";
        assert_eq!(packages(tree).len(), 3);
    }
}
