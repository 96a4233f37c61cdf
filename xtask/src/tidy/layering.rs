//! Checks that packages use only packages of lower layers. The layers are described in
//! `docs/architecture.md`; a new edge needs a decision.
//!
//! Dependencies of tests and examples are not restricted: they do not reach users, and `testkit`
//! is above all other packages.

use super::Finding;
use super::manifest::Manifest;
use crate::checkout::Checkout;

/// Packages of the workspace that a package may use.
enum Uses {
    Only(&'static [&'static str]),
    /// All packages in earlier rows.
    AllBefore,
}

use Uses::{AllBefore, Only};

/// Each package of the workspace, lowest first.
const LAYERS: &[(&str, Uses)] = &[
    // The first two are for other systems than Linux only.
    ("brigade-windows", Only(&[])),
    ("brigade-elsewhere", Only(&["brigade-windows"])),
    ("brigade-base", Only(&[])),
    ("brigade-metrics", Only(&[])),
    ("brigade-sys", Only(&["brigade-elsewhere", "brigade-base", "brigade-windows"])),
    ("brigade-codec", Only(&["brigade-sys"])),
    ("brigade-trace", Only(&["brigade-base", "brigade-sys"])),
    ("brigade-wire", Only(&["brigade-windows", "brigade-codec", "brigade-base", "brigade-sys"])),
    ("brigade-status", Only(&["brigade-metrics", "brigade-sys"])),
    ("brigade-crash", Only(&["brigade-windows", "brigade-wire", "brigade-sys"])),
    ("brigade-sandbox", Only(&["brigade-windows", "brigade-sys"])),
    (
        "brigade-supervisor",
        Only(&[
            "brigade-windows",
            "brigade-crash",
            "brigade-sandbox",
            "brigade-wire",
            "brigade-sys",
        ]),
    ),
    ("brigade-link-ipc", Only(&["brigade-windows", "brigade-wire", "brigade-sys"])),
    ("brigade-scheduler", Only(&["brigade-base"])),
    ("brigade-timer", Only(&["brigade-windows", "brigade-codec", "brigade-base", "brigade-sys"])),
    ("brigade-worker", Only(&["brigade-windows", "brigade-base", "brigade-wire", "brigade-sys"])),
    (
        "brigade-task",
        Only(&[
            "brigade-base",
            "brigade-crash",
            "brigade-sandbox",
            "brigade-wire",
            "brigade-worker",
            "brigade-sys",
        ]),
    ),
    ("brigade-cores", Only(&["brigade-windows", "brigade-sys"])),
    (
        "brigade-pool",
        Only(&[
            "brigade-cores",
            "brigade-crash",
            "brigade-link-ipc",
            "brigade-metrics",
            "brigade-base",
            "brigade-sandbox",
            "brigade-scheduler",
            "brigade-status",
            "brigade-supervisor",
            "brigade-task",
            "brigade-trace",
            "brigade-worker",
            "brigade-wire",
            "brigade-sys",
        ]),
    ),
    (
        "brigade-runner",
        Only(&[
            "brigade-windows",
            "brigade-cores",
            "brigade-base",
            "brigade-sandbox",
            "brigade-supervisor",
            "brigade-trace",
            "brigade-sys",
        ]),
    ),
    (
        "brigade-cluster",
        Only(&[
            "brigade-codec",
            "brigade-metrics",
            "brigade-pool",
            "brigade-base",
            "brigade-status",
            "brigade-task",
            "brigade-wire",
            "brigade-worker",
            "brigade-sys",
        ]),
    ),
    ("brigade", AllBefore),
    ("brigade-example-cluster", Only(&["brigade"])),
    ("brigade-example-crash", Only(&["brigade"])),
    ("brigade-example-image-loader", Only(&["brigade"])),
    ("brigade-example-service", Only(&["brigade"])),
    ("brigade-cli", Only(&["brigade", "brigade-base"])),
    // Tests of the lowest crates use it.
    ("brigade-testkit-core", Only(&["brigade-base"])),
    ("brigade-testkit-sys", Only(&[])),
    ("brigade-testkit", AllBefore),
    ("brigade-escape", AllBefore),
    ("brigade-integration", AllBefore),
    ("brigade-benches", AllBefore),
    ("brigade-scale", AllBefore),
    // It checks the other packages, so it must compile even if they do not.
    ("xtask", Only(&[])),
];

const TABLE: &str = "LAYERS in xtask/src/tidy/layering.rs";

const DOCUMENT: &str = "docs/architecture.md";

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    checkout
        .manifests()
        .flat_map(|file| check_manifest(&file.path, &Manifest::parse(&file.text)))
        .collect()
}

fn check_manifest(path: &str, manifest: &Manifest<'_>) -> Vec<Finding> {
    let Some(package) = manifest.package() else {
        return Vec::new();
    };
    let Some(layer) = layer(package) else {
        let message =
            format!("package `{package}` has no layer: add it to {TABLE} and to {DOCUMENT}");
        return vec![Finding::new(path, 1, message)];
    };
    let mut findings = Vec::new();
    for dependency in manifest.dependencies() {
        let name = dependency.name;
        if !may_use(layer, &name) {
            let message = format!(
                "`{package}` may not use `{name}`: move the shared code to a lower crate, or \
                 justify the edge in docs/decisions/ and add it to {TABLE}"
            );
            findings.push(Finding::new(path, dependency.line, message));
        }
    }
    findings
}

/// Compares the table of crates in [`DOCUMENT`], whose last column has what each one uses, with the
/// manifests.
pub(super) fn check_table(checkout: &Checkout) -> Vec<Finding> {
    let short = |name: &str| name.strip_prefix("brigade-").unwrap_or(name).to_owned();
    let mut findings = Vec::new();
    let text = checkout.file(DOCUMENT).map_or("", |file| file.text.as_str());
    for (line, row) in (1..).zip(text.lines()) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, name, _, _, column, _] = cells[..] else { continue };
        let manifests = checkout.manifests().map(|file| Manifest::parse(&file.text));
        let mut named = manifests.filter(|it| it.package() == Some(name.trim_matches('`')));
        let Some(manifest) = named.next() else { continue };
        let mut uses: Vec<String> = manifest
            .dependencies()
            .iter()
            .filter(|it| layer(&it.name).is_some())
            .map(|it| short(&it.name))
            .collect();
        // The standard library of another system; the text says who takes it.
        uses.retain(|it| it != "windows" || name.contains("elsewhere"));
        let mut listed: Vec<&str> = column.split(", ").filter(|it| *it != "–").collect();
        uses.sort_unstable();
        uses.dedup();
        listed.sort_unstable();
        if uses != listed {
            let message = format!("{name} uses {}: correct the last column", uses.join(", "));
            findings.push(Finding::new(DOCUMENT, line, message));
        }
    }
    findings
}

/// Returns the row of a package, or `None` for a package from outside the workspace.
fn layer(package: &str) -> Option<usize> {
    LAYERS.iter().position(|(name, _)| *name == package)
}

/// Returns `true` if the package in row `user` may use `package`. Packages from outside the
/// workspace have no layer and are always allowed.
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
    use super::{LAYERS, check, check_table, may_use};
    use crate::tidy::locations;

    #[test]
    fn an_upward_edge_is_found() {
        let wire = "[package]\nname = \"brigade-wire\"\n[dependencies]\n\
                    brigade-sys.workspace = true\nserde = \"1\"\nbrigade-pool.workspace = true\n";
        assert_eq!(
            locations(check, &[("crates/wire/Cargo.toml", wire)]),
            ["crates/wire/Cargo.toml:6"]
        );
    }

    #[test]
    fn tests_may_use_the_testkit() {
        let pool = "[package]\nname = \"brigade-pool\"\n[dev-dependencies]\n\
                    brigade-testkit.workspace = true\n";
        assert!(locations(check, &[("crates/pool/Cargo.toml", pool)]).is_empty());
    }

    #[test]
    fn a_package_without_a_layer_is_found() {
        let stray = "[package]\nname = \"stray\"\n";
        assert_eq!(
            locations(check, &[("crates/stray/Cargo.toml", stray)]),
            ["crates/stray/Cargo.toml:1"]
        );
    }

    #[test]
    fn a_row_that_differs_from_its_manifest_is_found() {
        let wire = "[package]\nname = \"brigade-wire\"\n[dependencies]\n\
                    brigade-sys.workspace = true\nserde = \"1\"\n";
        let table = "| `brigade-wire` | `crates/wire` | messages | sys |\n\
                     | `brigade-wire` | `crates/wire` | messages | base, sys |\n";
        let files = [("crates/wire/Cargo.toml", wire), ("docs/architecture.md", table)];
        assert_eq!(locations(check_table, &files), ["docs/architecture.md:2"]);
    }

    #[test]
    fn the_table_only_points_down() {
        for (user, (name, _)) in LAYERS.iter().enumerate() {
            for (used, (package, _)) in LAYERS.iter().enumerate().skip(user) {
                assert!(!may_use(user, package), "{name} ({user}) uses {package} ({used})");
            }
        }
    }
}
