//! Checks that the files of a crate do not import each other in a circle. A pair is allowed: two
//! files that need each other are one concept in two parts. Of three, somebody who reads one has to
//! read all.
//!
//! An import is a path to something of the same crate, in a `use` or in code. It leads to the file
//! that declares the name, through re-exports. A re-export is no import, nor is the declaration of
//! a module, nor what a part of a module takes from the file of that module: a part is read with
//! its whole. Tests are not looked at, nor are programs that are never published.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::checkout::{Checkout, File};

/// Programs for measuring and testing, whose parts drive each other.
const NEVER_PUBLISHED: &[&str] = &["benches", "crates/brigade/examples/", "crates/integration"];

/// The files of a crate, by the paths of their modules.
type Modules<'a> = BTreeMap<Vec<&'a str>, &'a File>;

/// The names that a module's `use` items bring into it, with the paths they stand for.
type Names<'a> = BTreeMap<&'a str, Vec<&'a str>>;

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Modules<'_>> = BTreeMap::new();
    for file in checkout.rust_files().filter(|file| !file.is_test() && !is_model(&file.path)) {
        let Some((root, inner)) = file.path.split_once("/src/") else { continue };
        if !inner.starts_with("bin/") && !NEVER_PUBLISHED.iter().any(|it| root.starts_with(it)) {
            crates.entry(root).or_default().insert(module_of(inner), file);
        }
    }
    crates.values().flat_map(circles).collect()
}

/// Returns a finding for each circle of more than two files.
fn circles(modules: &Modules<'_>) -> Vec<Finding> {
    let names: BTreeMap<_, _> =
        modules.iter().map(|(module, file)| (module, names(file))).collect();
    let mut imports: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (module, file) in modules {
        let targets = paths(file).filter(|path| !path.is_export).filter_map(|path| {
            let target = resolve(modules, &names, module, &path.segments, 0)?;
            let is_whole = module.split_last().is_some_and(|(_, whole)| whole == target);
            Some(modules.get(target.as_slice()).filter(|_| !is_whole)?.path.as_str())
        });
        imports.insert(&file.path, targets.filter(|target| *target != file.path).collect());
    }
    let mut findings = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for start in imports.keys() {
        if seen.contains(start) {
            continue;
        }
        let ahead = reachable(&imports, start);
        let circle: BTreeSet<_> =
            ahead.into_iter().filter(|file| reachable(&imports, file).contains(start)).collect();
        seen.extend(&circle);
        if circle.len() > 2 {
            let arrows: Vec<_> = circle
                .iter()
                .flat_map(|from| imports[from].intersection(&circle).map(move |to| (from, to)))
                .map(|(from, to)| format!("{} -> {}", inner(from), inner(to)))
                .collect();
            let message = format!(
                "{} files import each other in a circle: {}; move what they share to a file that \
                 imports none of them",
                circle.len(),
                arrows.join(", ")
            );
            findings.push(Finding::new(start, 1, message));
        }
    }
    findings
}

fn reachable<'a>(
    imports: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    start: &'a str,
) -> BTreeSet<&'a str> {
    let (mut found, mut ahead) = (BTreeSet::new(), vec![start]);
    while let Some(file) = ahead.pop() {
        for target in imports.get(file).into_iter().flatten() {
            if found.insert(*target) {
                ahead.push(target);
            }
        }
    }
    found
}

/// Returns the module whose file declares what a path leads to; `None` if that is outside of the
/// crate.
fn resolve<'a>(
    modules: &Modules<'a>,
    names: &BTreeMap<&Vec<&'a str>, Names<'a>>,
    from: &[&'a str],
    path: &[&'a str],
    depth: usize,
) -> Option<Vec<&'a str>> {
    let (mut module, mut rest) = (from.to_vec(), path);
    let is_below =
        |module: &[&'a str], name| modules.contains_key([module, &[name]].concat().as_slice());
    match rest.first()? {
        &"crate" => (module, rest) = (Vec::new(), &rest[1..]),
        &"self" => rest = &rest[1..],
        &"super" => {
            while rest.first() == Some(&"super") {
                module.pop()?;
                rest = &rest[1..];
            }
        }
        name if is_below(&module, name) => {}
        _ => return None,
    }
    while let Some(name) = rest.first().filter(|name| is_below(&module, name)) {
        module.push(name);
        rest = &rest[1..];
    }
    let known = names.get(&module)?;
    match rest.first().and_then(|name| known.get(name)) {
        Some(path) if depth < 8 => resolve(modules, names, &module, path, depth + 1),
        _ => Some(module),
    }
}

/// A path in a file.
struct Found<'a> {
    segments: Vec<&'a str>,
    /// The name by which the file knows it; `None` for a path in code, or a glob.
    name: Option<&'a str>,
    is_export: bool,
}

fn names(file: &File) -> Names<'_> {
    paths(file).filter_map(|path| Some((path.name?, path.segments))).collect()
}

/// Returns the paths of the `use` items of a file, and those in its code that begin with `crate` or
/// `super`.
fn paths(file: &File) -> impl Iterator<Item = Found<'_>> {
    let lines = file.code.lines().take(file.first_test_line() - 1);
    let end = lines.map(|line| line.len() + 1).sum();
    let mut rest = &file.code[..usize::min(end, file.code.len())];
    let mut found = Vec::new();
    while let Some(at) = rest.find("use ").into_iter().chain(rest.find("crate::")).min() {
        let (before, after) = rest.split_at(at);
        let line = before.rsplit('\n').next().unwrap_or_default().trim();
        if let Some(tree) = after.strip_prefix("use ").filter(|_| {
            line.is_empty() || line == "pub" || line.starts_with("pub(") && line.ends_with(')')
        }) {
            let end = tree.find(';').unwrap_or(tree.len());
            expand(&tree[..end], &[], !line.is_empty(), &mut found);
            rest = &tree[end..];
        } else {
            let end = after.find(|c: char| !c.is_alphanumeric() && !"_:".contains(c));
            let path = &after[..end.unwrap_or(after.len())];
            // Not a visibility.
            if path.starts_with("crate::") && !line.ends_with("(in") {
                let segments = path.split("::").filter(|it| !it.is_empty()).collect();
                found.push(Found { segments, name: None, is_export: false });
            }
            rest = &after[path.len().max(4)..];
        }
    }
    found.into_iter()
}

/// Splits the tree of a `use` item into paths.
fn expand<'a>(tree: &'a str, prefix: &[&'a str], is_export: bool, found: &mut Vec<Found<'a>>) {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let segments = head.split("::").map(str::trim).filter(|it| !it.is_empty());
        let prefix: Vec<_> = prefix.iter().copied().chain(segments).collect();
        let group = group.rsplit_once('}').map_or(group, |(group, _)| group);
        let (mut depth, mut begin) = (0_usize, 0);
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                ',' if depth == 0 => {
                    expand(&group[begin..at], &prefix, is_export, found);
                    begin = at + 1;
                }
                _ => {}
            }
        }
        return expand(&group[begin..], &prefix, is_export, found);
    }
    if tree.is_empty() {
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, to)| (path, Some(to)));
    let mut segments: Vec<_> = prefix.to_vec();
    segments.extend(path.split("::").map(str::trim).filter(|it| !it.is_empty()));
    if segments.last() == Some(&"self") && segments.len() > 1 {
        segments.pop();
    }
    let is_glob = segments.last() == Some(&"*");
    if is_glob {
        segments.pop();
    }
    let name = alias.map(str::trim).or(segments.last().copied()).filter(|_| !is_glob);
    found.push(Found { segments, name, is_export });
}

fn module_of(inner: &str) -> Vec<&str> {
    let path = inner.trim_end_matches(".rs");
    if path == "lib" || path == "main" { Vec::new() } else { path.split('/').collect() }
}

fn inner(path: &str) -> &str {
    path.split_once("/src/").map_or(path, |(_, inner)| inner)
}

fn is_model(path: &str) -> bool {
    path.ends_with("/loom.rs") || path.contains("/loom/")
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    const LIB: (&str, &str) = ("crates/a/src/lib.rs", "mod x;\nmod y;\nmod z;\npub use x::X;\n");

    #[test]
    fn a_circle_of_three_is_found_and_a_pair_is_not() {
        let x = ("crates/a/src/x.rs", "use crate::y::{Y, inner::{self, A}};\npub struct X;\n");
        let y = ("crates/a/src/y.rs", "use super::z::Z;\npub struct Y;\n");
        let z = ("crates/a/src/z.rs", "pub struct Z;\nfn f(x: crate::x::X) {}\n");
        assert_eq!(locations(check, &[LIB, x, y, z]), ["crates/a/src/x.rs:1"]);
        let z = ("crates/a/src/z.rs", "use crate::y::Y;\npub struct Z;\n");
        assert!(locations(check, &[LIB, x, y, z]).is_empty());
    }

    #[test]
    fn a_re_export_leads_to_the_file_that_declares_the_name() {
        let x = ("crates/a/src/x.rs", "pub use part::P;\nmod part;\npub struct X;\n");
        let part = ("crates/a/src/x/part.rs", "use crate::z::Z;\npub struct P;\n");
        let y = ("crates/a/src/y.rs", "use crate::X;\npub struct Y;\n");
        let z = ("crates/a/src/z.rs", "use crate::y::Y;\npub struct Z;\n");
        assert!(locations(check, &[LIB, x, part, y, z]).is_empty());
        let y = ("crates/a/src/y.rs", "use crate::x::P;\npub struct Y;\n");
        assert_eq!(locations(check, &[LIB, x, part, y, z]), ["crates/a/src/x/part.rs:1"]);
    }

    #[test]
    fn tests_and_other_crates_do_not_count() {
        let x =
            ("crates/a/src/x.rs", "use std::y::Y;\n#[cfg(test)]\nmod tests {\n use crate::y;\n}\n");
        let y = ("crates/a/src/y.rs", "use crate::z::Z;\n");
        let z = ("crates/a/src/z.rs", "use crate::x::X;\n");
        assert!(locations(check, &[LIB, x, y, z]).is_empty());
    }
}
