//! Checks that packages use only packages of lower layers. The layers are described in
//! `docs/architecture.md`; a new edge needs a decision.
//!
//! Dependencies of tests and examples are not restricted: they do not reach users, and `testkit`
//! is above all other packages.

use toml::de::DeValue;

use super::Finding;
use super::manifest::Manifest;
use super::published::published;
use crate::checkout::{Checkout, root};

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

/// The marks around the table of crates.
const BEGIN: &str = "<!-- crates -->";
const END: &str = "<!-- /crates -->";

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

/// Checks that the table of crates in [`DOCUMENT`] is the one that the manifests give.
pub(super) fn check_table(checkout: &Checkout) -> Vec<Finding> {
    let document = checkout.file(DOCUMENT).filter(|file| file.text.contains(BEGIN));
    let Some(file) = document else { return Vec::new() };
    if file.text == with_table(&file.text, &table(checkout)) {
        return Vec::new();
    }
    let line = file.text.lines().position(|line| line == BEGIN).unwrap_or(0) + 1;
    let message = "the table differs from the manifests: `cargo xtask tidy --bless`";
    vec![Finding::new(DOCUMENT, line, message)]
}

/// Writes the table of crates.
pub(super) fn bless(checkout: &Checkout) -> Result<String, String> {
    let file = checkout.file(DOCUMENT).ok_or_else(|| format!("there is no {DOCUMENT}"))?;
    std::fs::write(root().join(DOCUMENT), with_table(&file.text, &table(checkout)))
        .map_err(|error| format!("cannot write {DOCUMENT}: {error}"))?;
    Ok(format!("wrote the table of crates in {DOCUMENT}"))
}

/// Returns a row for each published package, highest first: its description, and what it uses of
/// the workspace.
fn table(checkout: &Checkout) -> String {
    let mut rows: Vec<(usize, String)> = Vec::new();
    for file in published(checkout) {
        let manifest = Manifest::parse(&file.text);
        let text = |key| manifest.get(&["package", key]).and_then(DeValue::as_str);
        let (Some(name), Some(contents)) = (text("name"), text("description")) else { continue };
        let Some(layer) = layer(name) else { continue };
        let contents = contents.trim_end_matches(". Internal to Brigade");
        let folder = file.path.trim_end_matches("/Cargo.toml");
        let mut uses: Vec<String> = manifest
            .dependencies()
            .iter()
            .filter(|used| self::layer(&used.name).is_some())
            .map(|used| used.name.trim_start_matches("brigade-").to_owned())
            .collect();
        uses.sort_unstable();
        uses.dedup();
        let uses = if uses.is_empty() { "–".to_owned() } else { uses.join(", ") };
        rows.push((layer, format!("| `{name}` | `{folder}` | {contents} | {uses} |\n")));
    }
    rows.sort_unstable_by(|one, other| other.cmp(one));
    let heading = "| crate | folder | contents | uses |\n|---|---|---|---|\n".to_owned();
    rows.into_iter().fold(heading, |table, (_, row)| table + &row)
}

/// Returns a document with the table between its marks.
fn with_table(document: &str, table: &str) -> String {
    let parts = document.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
    });
    parts.unwrap_or_else(|| document.to_owned())
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
    fn the_table_of_crates_is_that_of_the_manifests() {
        let wire = "[package]\nname = \"brigade-wire\"\n\
                    description = \"Messages. Internal to Brigade\"\n[dependencies]\n\
                    brigade-sys.workspace = true\nserde = \"1\"\n";
        let found = |uses: &str| {
            let row = format!("| `brigade-wire` | `crates/wire` | Messages | {uses} |\n");
            let table = format!("| crate | folder | contents | uses |\n|---|---|---|---|\n{row}");
            let document = format!("# A\n<!-- crates -->\n\n{table}\n<!-- /crates -->\n");
            let files = [("crates/wire/Cargo.toml", wire), ("docs/architecture.md", &document)];
            locations(check_table, &files)
        };
        assert!(found("sys").is_empty());
        assert_eq!(found("base, sys"), ["docs/architecture.md:2"]);
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
