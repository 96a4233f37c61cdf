//! Links between the Markdown files of the repository lead somewhere: to a file, and to a heading
//! in it.

use super::Finding;
use crate::checkout::{Checkout, File};

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in checkout.files.iter().filter(|file| is_markdown(&file.path)) {
        for (number, line) in prose(&file.text) {
            for target in targets(&line) {
                if let Some(problem) = problem(checkout, file, target) {
                    findings.push(Finding::new(
                        &file.path,
                        number,
                        format!("link `{target}`: {problem}"),
                    ));
                }
            }
        }
    }
    findings
}

fn is_markdown(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| extension == "md")
}

/// Numbered lines outside fenced code, with code between backticks blanked.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            // An unpaired backtick is not code.
            let parts: Vec<&str> = line.split('`').collect();
            let code = |index: usize| index % 2 == 1 && index + 1 < parts.len();
            let kept =
                parts.iter().enumerate().map(|(index, part)| if code(index) { "" } else { part });
            lines.push((number, kept.collect::<Vec<_>>().join("`")));
        }
    }
    lines
}

/// Targets of `[text](target)` and of `[name]: target`.
fn targets(line: &str) -> Vec<&str> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let reference = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
        .and_then(|(_, target)| target.split_whitespace().next());
    inline.chain(reference).collect()
}

fn problem(checkout: &Checkout, from: &File, target: &str) -> Option<String> {
    let elsewhere = target.contains("://") || target.starts_with("mailto:");
    if elsewhere {
        return None;
    }
    let (path, heading) =
        target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
    let path = if path.is_empty() { from.path.clone() } else { resolve(&from.path, path) };
    let folder = format!("{path}/");
    let Some(file) = checkout.file(&path) else {
        let exists =
            path.is_empty() || checkout.files.iter().any(|file| file.path.starts_with(&folder));
        return if exists { None } else { Some(format!("there is no `{path}`: correct the path")) };
    };
    let heading = heading.filter(|_| is_markdown(&path))?;
    let found = headings(&file.text).any(|anchor| anchor == heading);
    if found { None } else { Some(format!("`{path}` has no heading with this anchor: correct it")) }
}

/// The path of `target` from the root, seen from the folder of `from`.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Anchors as GitHub makes them from headings.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let mut fenced = false;
    text.lines().filter_map(move |line| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let title = line.trim_start_matches('#');
        let is_heading = !fenced && line.starts_with('#') && title.starts_with(' ');
        is_heading.then(|| anchor(title.trim()))
    })
}

fn anchor(title: &str) -> String {
    let kept = |character: &char| character.is_alphanumeric() || " -_".contains(*character);
    title
        .to_lowercase()
        .chars()
        .filter(kept)
        .map(|kept| if kept == ' ' { '-' } else { kept })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::places;

    const TARGET: (&str, &str) = ("docs/b.md", "# The life of a `task`\n```\n# not one\n```\n");

    #[test]
    fn links_that_lead_somewhere_pass() {
        let text = "[b](b.md) [h](b.md#the-life-of-a-task) [up](../README.md) [folder](decisions/)\n\
                    [out](https://example.org/x) [here](#title) `[code](none.md)`\n\n# Title\n\
                    ```\n[x](none.md)\n```\n[r]: b.md\n";
        let files = [
            ("docs/a.md", text),
            TARGET,
            ("README.md", "[d](docs/b.md)\n"),
            ("docs/decisions/1.md", ""),
        ];
        assert!(places(check, &files).is_empty());
    }

    #[test]
    fn broken_links_are_found_with_their_line() {
        let text = "[a](none.md)\n[b](b.md#not-one)\n[c](../b.md)\n[d]: gone.md\n";
        let expected = ["docs/a.md:1", "docs/a.md:2", "docs/a.md:3", "docs/a.md:4"];
        assert_eq!(places(check, &[("docs/a.md", text), TARGET]), expected);
    }
}
