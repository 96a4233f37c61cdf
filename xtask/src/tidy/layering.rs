//! Which package may use which. The table is the one in ARCHITECTURE.md; a new edge is a decision,
//! not an accident.
//!
//! Dependencies of tests and examples are free: they reach no user, and `testkit` stands on top of
//! everything.

use super::Finding;
use super::manifest::Manifest;
use crate::checkout::Checkout;

/// Which packages of the workspace a package may use.
enum Uses {
    Only(&'static [&'static str]),
    /// All packages of the rows before its own.
    AllBefore,
}

use Uses::{AllBefore, Only};

/// Each package of the workspace, lowest first.
const LAYERS: &[(&str, Uses)] = &[
    ("brigade-sys", Only(&[])),
    ("brigade-wire", Only(&["brigade-sys"])),
    ("brigade-timer", Only(&["brigade-wire", "brigade-sys"])),
    ("brigade-worker", Only(&["brigade-wire", "brigade-timer", "brigade-sys"])),
    ("brigade-cores", Only(&["brigade-sys"])),
    ("brigade-metrics", Only(&[])),
    ("brigade-pool", AllBefore),
    ("brigade-runner", Only(&["brigade-cores", "brigade-timer", "brigade-metrics", "brigade-sys"])),
    ("brigade", AllBefore),
    ("brigade-cli", Only(&["brigade"])),
    ("brigade-testkit", AllBefore),
    ("brigade-integration", AllBefore),
    ("brigade-benches", AllBefore),
    // It checks the others, so it must compile when they do not.
    ("xtask", Only(&[])),
];

const TABLE: &str = "LAYERS in xtask/src/tidy/layering.rs";

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    checkout
        .manifests()
        .flat_map(|file| check_manifest(&file.path, &Manifest::parse(&file.text)))
        .collect()
}

fn check_manifest(path: &str, manifest: &Manifest) -> Vec<Finding> {
    let Some(package) = manifest.package() else {
        return Vec::new();
    };
    let Some(layer) = layer(package) else {
        let message =
            format!("package `{package}` has no layer: add it to {TABLE} and to ARCHITECTURE.md");
        return vec![Finding::new(path, 1, message)];
    };
    let mut findings = Vec::new();
    for dependency in manifest.dependencies() {
        let name = dependency.name;
        if !may_use(layer, name) {
            let message = format!(
                "`{package}` may not use `{name}`: move what it needs to a lower crate, or argue \
                 for the edge in docs/decisions/ and add it to {TABLE}"
            );
            findings.push(Finding::new(path, dependency.line, message));
        }
    }
    findings
}

/// The row of a package of the workspace.
fn layer(package: &str) -> Option<usize> {
    LAYERS.iter().position(|(name, _)| *name == package)
}

/// Packages from outside of the workspace are no matter of layers.
fn may_use(user: usize, package: &str) -> bool {
    let Some(below) = layer(package) else {
        return true;
    };
    match &LAYERS[user].1 {
        Only(allowed) => allowed.contains(&package),
        AllBefore => below < user,
    }
}

#[cfg(test)]
mod tests {
    use super::{LAYERS, check, may_use};
    use crate::tidy::places;

    #[test]
    fn an_upward_edge_is_found() {
        let wire = "[package]\nname = \"brigade-wire\"\n[dependencies]\n\
                    brigade-sys.workspace = true\nserde = \"1\"\nbrigade-pool.workspace = true\n";
        assert_eq!(
            places(check, &[("crates/wire/Cargo.toml", wire)]),
            ["crates/wire/Cargo.toml:6"]
        );
    }

    #[test]
    fn tests_may_use_the_testkit() {
        let pool = "[package]\nname = \"brigade-pool\"\n[dev-dependencies]\n\
                    brigade-testkit.workspace = true\n";
        assert!(places(check, &[("crates/pool/Cargo.toml", pool)]).is_empty());
    }

    #[test]
    fn a_package_without_a_layer_is_found() {
        let stray = "[package]\nname = \"stray\"\n";
        assert_eq!(
            places(check, &[("crates/stray/Cargo.toml", stray)]),
            ["crates/stray/Cargo.toml:1"]
        );
    }

    #[test]
    fn the_table_points_down_only() {
        for (user, (name, _)) in LAYERS.iter().enumerate() {
            for (used, (package, _)) in LAYERS.iter().enumerate().skip(user) {
                assert!(!may_use(user, package), "{name} ({user}) uses {package} ({used})");
            }
        }
    }
}
