//! Checks that the figures that README copies by hand are those of the tables in
//! `docs/performance.md`. Others between the marks of `benches` are written by a program.

use super::Finding;
use crate::checkout::Checkout;

const README: &str = "README.md";
const MEASURED: &str = "docs/performance.md";

const SECTION: &str = "## What to choose";

const UNITS: [&str; 5] = ["ns", "µs", "ms", "s", "%"];

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let (Some(readme), Some(measured)) = (checkout.file(README), checkout.file(MEASURED)) else {
        return Vec::new();
    };
    let rows: Vec<String> =
        measured.text.lines().filter(|line| line.starts_with('|')).map(padded).collect();
    let lines = (1..).zip(readme.text.lines()).skip_while(|(_, line)| *line != SECTION);
    let section = lines.skip(1).take_while(|(_, line)| !line.starts_with("## "));
    let mut findings = Vec::new();
    for (number, line) in section {
        for figure in figures(line) {
            if !rows.iter().any(|row| row.contains(&padded(&figure))) {
                let message = format!("no table of {MEASURED} has `{figure}`: copy it from there");
                findings.push(Finding::new(README, number, message));
            }
        }
    }
    findings
}

/// Returns the numbers of a line that have a unit, with it.
fn figures(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let pairs = words.windows(2).map(|pair| (pair[0], pair[1].trim_end_matches(['.', ',', ':'])));
    let figures =
        pairs.filter(|(number, unit)| number.parse::<f64>().is_ok() && UNITS.contains(unit));
    figures.map(|(number, unit)| format!("{number} {unit}")).collect()
}

/// Returns the words of a line, each between single spaces, so that a search finds whole words.
fn padded(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    format!(" {} ", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    #[test]
    fn a_figure_that_no_table_has_is_found() {
        let measured =
            ("docs/performance.md", "Not 9 ns.\n| p50 | 440 ns (421 ns to 451 ns) | 95.6 % |\n");
        let found = |text: &str| {
            let readme = format!("7 ns\n## What to choose\n\n{text}\n## Promises\n8 ns\n");
            locations(check, &[("README.md", &readme), measured])
        };
        assert!(found("| p50 | 440 ns | 95.6 % |").is_empty());
        assert_eq!(found("| p50 | 40 ns |"), ["README.md:4"]);
        assert_eq!(found("It takes 9 ns."), ["README.md:4"]);
    }
}
