//! A function call on a stack.

use std::fmt;
use std::path::Path;

use brigade_sys::elf::Elf;
use serde::{Deserialize, Serialize};

use crate::files::Modules;
use crate::mapping::{self, Mapping};

/// Maximum number of frames of a stack, without inlined ones.
pub const MAX_FRAMES: usize = 256;

/// One call of a function on the stack of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    pub(crate) function: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) module: Option<String>,
    pub(crate) offset: u64,
    pub(crate) is_inlined: bool,
}

/// The code to which a frame belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The program, or a library that it uses.
    Program,
    /// Brigade.
    Brigade,
    /// The standard library, or the code around `main`.
    Std,
}

/// Returns the frame of an address, without a name.
pub(crate) fn place(modules: &Modules, mappings: &[Mapping], address: u64) -> Frame {
    let mapping = mapping::find(mappings, address);
    let mapping = mapping.filter(|it| it.is_executable && it.name().is_some());
    let offset = mapping.map_or(address, |mapping| {
        let position = address - mapping.start + mapping.offset;
        let elf = modules.find(mapping).and_then(|module| Elf::open(&module.path()));
        elf.and_then(|elf| elf.address_of(position)).unwrap_or(position)
    });
    Frame {
        function: None,
        file: None,
        line: None,
        module: mapping.and_then(Mapping::name).map(ToOwned::to_owned),
        offset,
        is_inlined: false,
    }
}

impl Frame {
    /// Returns the name of the function, if the file has symbols.
    pub fn function(&self) -> Option<&str> {
        self.function.as_deref()
    }

    /// Returns the source file, if the program has debug information.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Returns the line in the source file, counted from 1.
    pub fn line(&self) -> Option<u32> {
        self.line
    }

    /// Returns the name of the executable or library.
    pub fn module(&self) -> Option<&str> {
        self.module.as_deref()
    }

    /// Returns the address in the file of the module, as `addr2line` and `objdump` take it; the
    /// address in the process if there is no module.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns `true` if the compiler has put the function into its caller.
    pub fn is_inlined(&self) -> bool {
        self.is_inlined
    }

    /// Returns the code to which the frame belongs, by its source file or the name of the function.
    pub fn origin(&self) -> Origin {
        let file = self.file.as_deref().unwrap_or_default();
        if file.starts_with("/rustc/") {
            return Origin::Std;
        }
        if is_brigade(file) {
            return Origin::Brigade;
        }
        let Some(function) = &self.function else { return Origin::Program };
        let path = function.trim_start_matches(['<', '&', '(', '*', '[']);
        let path = path.strip_prefix("mut ").unwrap_or(path);
        let root = path.split("::").next().unwrap_or_default();
        match root {
            _ if ABOVE_MAIN.contains(&function.as_str()) => Origin::Std,
            "std" | "core" | "alloc" if path.contains("::") => Origin::Std,
            _ if BRIGADE.contains(&root) && path.contains("::") => Origin::Brigade,
            _ => Origin::Program,
        }
    }

    /// Returns `true` for the code that runs tasks.
    fn is_event_loop(&self) -> bool {
        let is_worker = |it: &str| it.trim_start_matches('<').starts_with("brigade_worker::");
        let is_file = |it: &str| is_brigade(it) && it.ends_with("/start.rs");
        self.function.as_deref().is_some_and(is_worker) || self.file.as_deref().is_some_and(is_file)
    }

    fn is_same_function(&self, other: &Self) -> bool {
        self.function.is_some() && self.function == other.function
    }

    /// Returns `true` for a function of the C library that has no symbol, like the one that calls
    /// `main`.
    fn is_unnamed_libc(&self) -> bool {
        let module = self.module.as_deref().unwrap_or_default();
        self.function.is_none() && module.starts_with("libc.so")
    }

    fn name(&self) -> &str {
        self.function.as_deref().unwrap_or("<unknown>")
    }

    /// Returns the place in the module: `libjpeg.so.62 + 0x1a2f0`.
    pub(crate) fn place(&self) -> String {
        match &self.module {
            Some(module) => format!("{module} + {:#x}", self.offset),
            None => format!("{:#x}, in no file", self.offset),
        }
    }

    /// Returns the source file and the line, without the folder in which the program was built if
    /// that is the present one.
    pub(crate) fn source(&self) -> Option<String> {
        let file = self.file.as_deref()?;
        let here = std::env::current_dir().ok();
        let short =
            here.and_then(|here| Path::new(file).strip_prefix(here).ok().map(Path::to_owned));
        let file = short.as_deref().and_then(Path::to_str).unwrap_or(file);
        Some(self.line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}")))
    }
}

/// Returns `true` for a source file of Brigade: its crates lie in one folder, also where cargo
/// keeps those that it has downloaded.
fn is_brigade(file: &str) -> bool {
    let Some((folder, _)) = file!().rsplit_once("crash") else { return false };
    let (folder, prefix) = match folder.strip_suffix("brigade-") {
        Some(folder) => (folder, "brigade-"),
        None => (folder, ""),
    };
    let Some((_, path)) = file.split_once(folder) else { return false };
    let mut parts = path.split('/');
    let (name, source) = (parts.next().unwrap_or_default(), parts.next());
    let name = name.strip_prefix(prefix).unwrap_or_default();
    let name = name.split_once("-0").map_or(name, |(name, _)| name);
    let is_crate = |it: &&str| it.strip_prefix("brigade_").unwrap_or(it).replace('_', "-") == name;
    source == Some("src") && BRIGADE.iter().any(is_crate)
}

/// Functions of the C library and of the runtime that call the program.
const ABOVE_MAIN: [&str; 9] = [
    "main",
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "__libc_start_main_impl",
    "__rust_begin_short_backtrace",
    "__rust_try",
    "start_thread",
    "__clone3",
];

const BRIGADE: [&str; 11] = [
    "brigade",
    "brigade_cluster",
    "brigade_codec",
    "brigade_crash",
    "brigade_link_ipc",
    "brigade_pool",
    "brigade_supervisor",
    "brigade_sys",
    "brigade_task",
    "brigade_wire",
    "brigade_worker",
];

/// The name, the source, and the module.
impl fmt::Display for Frame {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        match self.source() {
            Some(source) => write!(out, "{name:<40} {source:<24} {}", self.place()),
            None => write!(out, "{name:<40} {}", self.place()),
        }
    }
}

/// Writes frames, one a line, and folds those that tell little: calls within Brigade and the
/// standard library, and a function that calls itself. The innermost frame always has a line: the
/// compiler may have put functions of the program into it.
pub(crate) fn write_all(frames: &[Frame], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let rest = start_of_rest(frames).max(1).min(frames.len());
    let mut index = 0;
    let mut module = None;
    while index < rest {
        let frame = &frames[index];
        let shown = &frames[index + 1..rest];
        if index == 0 || frame.origin() == Origin::Program {
            // Where the source is known, the module is of interest once.
            match frame.source().filter(|_| module == Some(&frame.module)) {
                Some(source) => write!(out, "\n{index:3} {:<40} {source}", frame.name())?,
                None => write!(out, "\n{index:3} {frame}")?,
            }
            module = Some(&frame.module);
            let same = shown.iter().take_while(|it| it.is_same_function(frame)).count();
            if same > 1 {
                write!(out, "\n{:3} … ({same} more calls of it)", index + 1)?;
                index += same;
            }
            index += 1;
        } else {
            let folded = shown.iter().take_while(|it| it.origin() != Origin::Program).count() + 1;
            let frames = if folded == 1 { "frame" } else { "frames" };
            let of = described(&frames_of(shown, folded, frame));
            write!(out, "\n{index:3} … ({folded} {frames} of {of})")?;
            index += folded;
        }
    }
    if rest < frames.len() {
        let rest_of: Vec<_> = frames[rest..].iter().map(Frame::origin).collect();
        write!(out, "\n{rest:3} … (the rest is {})", described(&rest_of))?;
    }
    Ok(())
}

/// Returns the index from which on nothing is of interest: what Brigade, or the standard library,
/// does before it calls the program.
fn start_of_rest(frames: &[Frame]) -> usize {
    let outermost = frames.iter().rposition(Frame::is_event_loop);
    let end = outermost.map_or(frames.len(), |outermost| outermost + 1);
    let is_outside = |frame: &Frame| frame.origin() != Origin::Program || frame.is_unnamed_libc();
    let last = frames[..end].iter().rposition(|frame| !is_outside(frame));
    last.map_or(0, |last| last + 1)
}

fn frames_of(shown: &[Frame], folded: usize, first: &Frame) -> Vec<Origin> {
    let others = shown.iter().take(folded - 1).map(Frame::origin);
    std::iter::once(first.origin()).chain(others).collect()
}

fn described(origins: &[Origin]) -> &'static str {
    if origins.contains(&Origin::Brigade) { "Brigade" } else { "the standard library" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str) -> Frame {
        Frame {
            function: Some(function.to_owned()),
            file: None,
            line: None,
            module: Some("shop".to_owned()),
            offset: 0x10,
            is_inlined: false,
        }
    }

    #[test]
    fn functions_belong_to_the_program_to_brigade_or_to_std() {
        for (name, origin) in [
            ("shop::decode", Origin::Program),
            ("<shop::A as core::fmt::Display>::fmt", Origin::Program),
            ("decode_mcu", Origin::Program),
            ("core", Origin::Program),
            ("core::ptr::read_volatile", Origin::Std),
            ("<&mut std::io::Stdout as x>::f", Origin::Std),
            ("main", Origin::Std),
            ("<brigade_worker::typed::Typed as x>::call", Origin::Brigade),
            ("brigade_shop::decode", Origin::Program),
        ] {
            assert_eq!(frame(name).origin(), origin, "{name}");
        }
        let in_file = |file: &str| Frame { file: Some(file.to_owned()), ..frame("run") }.origin();
        assert_eq!(in_file(&format!("/build/{}", file!())), Origin::Brigade);
        assert_eq!(in_file(&file!().replace("crash", "worker")), Origin::Brigade);
        assert_eq!(in_file(&file!().replace("crash", "shop")), Origin::Program);
        assert_eq!(in_file("/build/shop/src/frame.rs"), Origin::Program);
        assert_eq!(in_file("/rustc/1/library/std/src/panic.rs"), Origin::Std);
    }

    #[test]
    fn frames_of_brigade_and_std_are_folded() {
        struct Shown(Vec<Frame>);
        impl fmt::Display for Shown {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_all(&self.0, out)
            }
        }
        let shown = |names: &[&str]| {
            let text = Shown(names.iter().map(|name| frame(name)).collect()).to_string();
            let lines = text.lines().skip(1);
            let words = lines.map(|line| line.split("  ").find(|it| !it.is_empty()).map(str::trim));
            words.flatten().map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            shown(&[
                "core::a",
                "shop::b",
                "std::c",
                "alloc::d",
                "e",
                "brigade_worker::f",
                "shop::main",
                "main"
            ]),
            [
                "0 core::a",
                "1 shop::b",
                "2 … (2 frames of the standard library)",
                "4 e",
                "5 … (the rest is Brigade)"
            ]
        );
        assert_eq!(
            shown(&["shop::a", "shop::a", "shop::a", "std::thread::b", "__clone3"]),
            ["0 shop::a", "1 … (2 more calls of it)", "3 … (the rest is the standard library)"]
        );
        assert_eq!(
            shown(&["brigade_worker::a", "main"]),
            ["0 brigade_worker::a", "1 … (the rest is the standard library)"]
        );
        assert_eq!(shown(&["shop::a"]), ["0 shop::a"]);
        assert_eq!(shown(&[]), [""; 0]);
    }
}
