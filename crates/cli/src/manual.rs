//! `brigade man`: manual pages, one for the command and one for each subcommand.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_mangen::Man;

/// The synopsis of `run` and `parallel`, whose words clap cannot express.
const SYNOPSIS: &str = r".SH SYNOPSIS
\fBbrigade NAME\fR [\fIOPTIONS\fR] [\fB\-\-\fR] \fICOMMAND\fR ... [\fB:::\fR \fIARGUMENT\fR ...] [\fB::::\fR \fIFILE\fR ...]
.br
\fBbrigade NAME\fR [\fIOPTIONS\fR] \fIFILE\fR
";

/// Writes a page to a file in `folder` for the command and for each subcommand.
pub(crate) fn write_to(folder: &Path, command: Command) -> io::Result<()> {
    for page in pages(command) {
        let path = folder.join(format!("{}.1", name(&page)));
        let file = File::create(&path);
        let mut file = file.map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        write(&mut file, page)?;
    }
    Ok(())
}

/// Prints all pages, one after the other.
pub(crate) fn print(writer: &mut impl Write, command: Command) -> io::Result<()> {
    pages(command).into_iter().try_for_each(|page| write(writer, page))
}

/// Returns the command and all subcommands that its help shows.
fn pages(command: Command) -> Vec<Command> {
    let mut command = command.disable_help_subcommand(true);
    // Gives subcommands their full names.
    command.build();
    with_subcommands(&command)
}

fn with_subcommands(command: &Command) -> Vec<Command> {
    let shown = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    [command.clone()].into_iter().chain(shown.flat_map(with_subcommands)).collect()
}

fn name(page: &Command) -> String {
    page.get_display_name().unwrap_or_else(|| page.get_name()).to_owned()
}

fn write(writer: &mut impl Write, page: Command) -> io::Result<()> {
    let rest = page.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (name, has_subcommands) = (page.get_name().to_owned(), page.has_subcommands());
    let man = Man::new(page).source(concat!("brigade ", env!("CARGO_PKG_VERSION")));
    man.render_title(writer)?;
    man.render_name_section(writer)?;
    if name == "run" || name == "parallel" {
        writer.write_all(SYNOPSIS.replace("NAME", &name).as_bytes())?;
    } else {
        man.render_synopsis_section(writer)?;
    }
    man.render_description_section(writer)?;
    man.render_options_section(writer)?;
    if has_subcommands {
        man.render_subcommands_section(writer)?;
    }
    for section in rest.split("\n\n").filter_map(|section| section.split_once(':')) {
        let (title, text) = section;
        // Lines stay as they are, without their indentation.
        let lines = text.trim_start_matches('\n').lines();
        let text: String = lines
            .map(|line| escaped(line.strip_prefix("  ").unwrap_or(line.trim_start())))
            .collect();
        write!(writer, ".SH {}\n.nf\n{text}.fi\n", title.to_uppercase())?;
    }
    Ok(())
}

/// Escapes the characters that mean something to troff.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for line in text.lines() {
        if line.starts_with(['.', '\'']) {
            escaped.push_str(r"\&");
        }
        escaped.push_str(&line.replace('\\', r"\e").replace('-', r"\-").replace('\'', r"\(aq"));
        escaped.push('\n');
    }
    escaped
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn examples_keep_their_lines() {
        assert_eq!(escaped(".a -b\n'c\\d'"), "\\&.a \\-b\n\\&\\(aqc\\ed\\(aq\n");
        let mut text = Vec::new();
        print(&mut text, crate::arguments::Arguments::command()).expect("memory");
        let text = String::from_utf8(text).expect("UTF-8");
        assert!(text.contains("EXAMPLES\n.nf\nbrigade run gzip \\-9 {} ::: *.log  "), "{text}");
        for section in ["REPLACEMENT STRINGS", "EXIT STATUS"] {
            assert!(text.contains(&format!("\n.SH {section}")), "{section}");
        }
        assert!(!text.contains("EXTRA"));
    }

    #[test]
    fn all_pages_that_a_page_mentions_exist() {
        let folder = tempfile::tempdir().expect("a directory");
        write_to(folder.path(), crate::arguments::Arguments::command()).expect("disk");
        let main = std::fs::read_to_string(folder.path().join("brigade.1")).expect("written");
        let mut mentioned = 0;
        for word in main.split_whitespace().filter(|word| word.ends_with("(1)")) {
            let word = word.replace('\\', "");
            let page = word.trim_end_matches("(1)");
            assert!(folder.path().join(format!("{page}.1")).exists(), "{page}");
            mentioned += 1;
        }
        assert!(mentioned >= 4, "{main}");
    }
}
