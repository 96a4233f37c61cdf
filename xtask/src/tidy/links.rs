//! Checks that links between the Markdown files of the repository lead to an existing file and
//! heading, and so do links to the repository's pages from there and from Rust files.

use std::path::Path;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::Finding;
use crate::checkout::Checkout;

/// The beginnings of links to a file or a folder on the page of the repository.
const PAGES: [&str; 2] = [
    "https://github.com/brigade-rs/brigade/blob/main/",
    "https://github.com/brigade-rs/brigade/tree/main/",
];

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in checkout.files.iter().filter(|file| is_markdown(&file.path)) {
        for (line, target) in targets(&file.text) {
            if let Some(problem) = problem(checkout, &file.path, &target) {
                let message = format!("link `{target}`: {problem}");
                findings.push(Finding::new(&file.path, line, message));
            }
        }
    }
    for file in checkout.files.iter().filter(|file| is_markdown(&file.path) || file.is_rust()) {
        for (line, target) in pages(&file.text) {
            if let Some(problem) = problem(checkout, "", target) {
                let message =
                    format!("link to `{target}` on the page of the repository: {problem}");
                findings.push(Finding::new(&file.path, line, message));
            }
        }
    }
    findings
}

pub(super) fn is_markdown(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "md")
}

fn parse(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
}

/// Returns the targets of links, images and link definitions, with their lines.
fn targets(text: &str) -> Vec<(usize, String)> {
    let line = |start: usize| 1 + text[..start].matches('\n').count();
    let parser = parse(text);
    let mut targets: Vec<(usize, String)> = parser
        .reference_definitions()
        .iter()
        .map(|(_, definition)| (line(definition.span.start), definition.dest.to_string()))
        .collect();
    for (event, range) in parser.into_offset_iter() {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            targets.push((line(range.start), dest_url.into_string()));
        }
    }
    targets.sort();
    targets.dedup();
    targets
}

/// Returns the paths, with their anchors, of links to pages of the repository, with their lines.
fn pages(text: &str) -> Vec<(usize, &str)> {
    let is_end = |character: char| character.is_whitespace() || ")>\"`'{}".contains(character);
    let mut pages = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        for page in PAGES {
            let after = text.match_indices(page).map(|(start, page)| &text[start + page.len()..]);
            let targets = after.map(|rest| rest.split(is_end).next().unwrap_or_default());
            pages.extend(targets.filter(|target| !target.is_empty()).map(|target| (line, target)));
        }
    }
    pages
}

/// Returns what is wrong with a link in the file `from`.
fn problem(checkout: &Checkout, from: &str, target: &str) -> Option<String> {
    let elsewhere = target.contains("://") || target.starts_with("mailto:");
    if elsewhere {
        return None;
    }
    let (path, heading) =
        target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
    let path = if path.is_empty() { from.to_owned() } else { resolve(from, path) };
    let folder = format!("{path}/");
    let Some(file) = checkout.file(&path) else {
        let exists =
            path.is_empty() || checkout.files.iter().any(|file| file.path.starts_with(&folder));
        return if exists { None } else { Some(format!("there is no `{path}`: correct the path")) };
    };
    let heading = heading.filter(|_| is_markdown(&path))?;
    if anchors(&file.text).iter().any(|anchor| anchor == heading) {
        None
    } else {
        Some(format!("`{path}` has no heading with this anchor: correct it"))
    }
}

/// Returns the path from the root of `target`, which is relative to the folder of `from`.
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

/// Returns the anchors that GitHub makes of the headings, and those of paragraphs (`<a id="x">`).
fn anchors(text: &str) -> Vec<String> {
    let (mut anchors, mut heading) = (Vec::new(), None::<String>);
    for event in parse(text) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::End(TagEnd::Heading(_)), _) => {
                anchors.extend(heading.take().as_deref().map(anchor));
            }
            (Event::Text(text) | Event::Code(text), Some(heading)) => heading.push_str(&text),
            (Event::InlineHtml(html), _) => anchors.extend(id(&html).map(str::to_owned)),
            _ => {}
        }
    }
    anchors
}

fn id(html: &str) -> Option<&str> {
    html.strip_prefix("<a id=\"")?.strip_suffix("\">")
}

pub(super) fn anchor(title: &str) -> String {
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
    use super::{PAGES, check};
    use crate::tidy::locations;

    const TARGET: (&str, &str) =
        ("docs/b.md", "# The life of a `task`\n```\n# not one\n```\n- <a id=\"p\"></a>A point.\n");

    #[test]
    fn links_to_existing_targets_pass() {
        let text = "[b](b.md) [h](b.md#the-life-of-a-task) [p](b.md#p) [up](../README.md) [folder](decisions/)\n\
                    [out](https://example.org/x) [here](#title) `[code](none.md)`\n\n# Title\n\
                    ```\n[x](none.md)\n```\n[r]: b.md\n";
        let files = [
            ("docs/a.md", text),
            TARGET,
            ("README.md", "[d](docs/b.md)\n"),
            ("docs/decisions/1.md", ""),
        ];
        assert!(locations(check, &files).is_empty());
    }

    #[test]
    fn broken_links_are_found_with_their_line() {
        let text = "[a](none.md)\n[b](b.md#not-one)\n[c](../b.md)\n\n[d]: gone.md\n";
        let expected = ["docs/a.md:1", "docs/a.md:2", "docs/a.md:3", "docs/a.md:5"];
        assert_eq!(locations(check, &[("docs/a.md", text), TARGET]), expected);
    }

    #[test]
    fn links_to_pages_of_the_repository_are_checked() {
        let blob = PAGES[0];
        let good = format!("//! [b]({blob}docs/b.md#the-life-of-a-task) [c]({blob}docs)\n");
        let bad = format!("//!\n//! [b]: {blob}docs/none.md\n//! <{blob}docs/b.md#not-one>\n");
        let files = [("crates/a/src/lib.rs", &*good), ("crates/b/src/lib.rs", &*bad), TARGET];
        assert_eq!(locations(check, &files), ["crates/b/src/lib.rs:2", "crates/b/src/lib.rs:3"]);
    }
}
