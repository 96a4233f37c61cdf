//! Parts of arguments: file names, directories, extensions.

/// The part of an argument to insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// `{}`
    Whole,
    /// `{.}`, and `{..}` and `{...}`: without this number of extensions
    Stem(usize),
    /// `{/}`: without its directory
    Name,
    /// `{//}`: its directory
    Folder,
    /// `{/.}`, and `{/..}` and `{/...}`: without its directory and this number of extensions
    NameStem(usize),
    /// `{+/}`: its directory, empty if it has none
    PlainFolder,
    /// `{+.}`, `{+..}`, `{+...}`: this number of extensions
    Extension(usize),
}

/// The replacement strings that `--plus` adds.
const PLUS: [(&str, Part); 8] = [
    ("..", Part::Stem(2)),
    ("...", Part::Stem(3)),
    ("/..", Part::NameStem(2)),
    ("/...", Part::NameStem(3)),
    ("+/", Part::PlainFolder),
    ("+.", Part::Extension(1)),
    ("+..", Part::Extension(2)),
    ("+...", Part::Extension(3)),
];

/// The replacement strings that are always there.
const ALWAYS: [(&str, Part); 5] = [
    ("", Part::Whole),
    (".", Part::Stem(1)),
    ("/", Part::Name),
    ("//", Part::Folder),
    ("/.", Part::NameStem(1)),
];

impl Part {
    /// Returns the part that the text within braces stands for.
    pub(super) fn parse(text: &[u8], has_plus: bool) -> Option<Self> {
        let plus = if has_plus { &PLUS[..] } else { &[] };
        let all = ALWAYS.iter().chain(plus);
        all.into_iter().find(|(name, _)| name.as_bytes() == text).map(|(_, part)| *part)
    }

    /// Returns this part of an argument.
    pub(super) fn of(self, argument: &[u8]) -> &[u8] {
        let folder = argument.iter().rposition(|byte| *byte == b'/');
        match self {
            Self::Whole => argument,
            Self::Stem(count) => &argument[..extension_start(argument, count)],
            Self::Name => name(argument),
            Self::NameStem(count) => {
                let name = name(argument);
                &name[..extension_start(name, count)]
            }
            Self::Folder => match folder {
                Some(0) => b"/",
                Some(slash) => &argument[..slash],
                None => b".",
            },
            Self::PlainFolder => &argument[..folder.unwrap_or(0)],
            Self::Extension(count) => {
                let extension = &argument[extension_start(argument, count)..];
                extension.strip_prefix(b".").unwrap_or_default()
            }
        }
    }
}

fn name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Returns the index at which this number of extensions starts; the end of the path if it has
/// fewer.
fn extension_start(path: &[u8], count: usize) -> usize {
    let start = path.len() - name(path).len();
    let dots = path[start..].iter().enumerate().rev().filter(|(_, byte)| **byte == b'.');
    dots.map(|(at, _)| start + at).nth(count - 1).unwrap_or(path.len())
}
