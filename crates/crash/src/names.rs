//! Finds the functions and lines of addresses.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use addr2line::gimli::Reader;
use addr2line::{FrameIter, Loader, demangle_auto};
use brigade_sys::catch_panic::catch_panic;
use brigade_sys::sync::Mutex;

use crate::files::{Module, Modules};
use crate::foreign::Sections;
use crate::frame::{Frame, place};
use crate::mapping::{self, Mapping};
use crate::unwind::UnwoundCall;

/// The debug information of files that this process has loaded too. They are few, and stay.
static LOADED: Mutex<Option<HashMap<PathBuf, Option<Loader>>>> = Mutex::new(None);

/// Files of which copies are made for one stack.
const MAX_COPIES: usize = 8;

/// Returns the frames of the calls, with those of inlined functions.
pub(crate) fn frames(modules: &Modules, mappings: &[Mapping], calls: &[UnwoundCall]) -> Vec<Frame> {
    let module = |call: &UnwoundCall| modules.find(mapping::find(mappings, call.address)?);
    let mut copies = HashMap::new();
    for module in calls.iter().filter_map(module) {
        if let Module::Foreign(path) = module
            && copies.len() < MAX_COPIES
        {
            copies.entry(path).or_insert_with_key(|path| Sections::copy(path));
        }
    }
    let foreign = copies.iter().filter_map(|(path, sections)| {
        let sections = sections.as_ref()?;
        Some((path, (sections, catch_panic(|| sections.context()).ok().flatten())))
    });
    let foreign: HashMap<_, _> = foreign.collect();
    let functions = |call: &UnwoundCall, bare: &Frame| match module(call)? {
        Module::Own(mapping) => {
            let mut files = LOADED.lock();
            let file = files.get_or_insert_default().entry(mapping.file());
            let load = |path: &PathBuf| Loader::new(named_path(&mapping, path)).ok();
            let file = file.or_insert_with_key(load).as_ref()?;
            Some(named(file.find_frames(bare.offset).ok(), file.find_symbol(bare.offset), bare))
        }
        Module::Foreign(path) => {
            let (sections, context) = foreign.get(&path)?;
            let frames = context.as_ref().map(|it| it.find_frames(bare.offset));
            let frames = frames.and_then(|it| it.skip_all_loads().ok());
            Some(named(frames, sections.symbol(bare.offset), bare))
        }
    };
    let frames = calls.iter().flat_map(|call| {
        let bare = place(modules, mappings, call.address);
        let functions = catch_panic(|| functions(call, &bare)).ok().flatten();
        functions.unwrap_or_else(|| vec![bare])
    });
    frames.collect()
}

/// Returns the path that a file has in its folder, where its debug information may lie beside it,
/// unless there is another file of this name now.
fn named_path(mapping: &Mapping, path: &Path) -> PathBuf {
    let identity = |path: &Path| fs::metadata(path).map(|it| (it.dev(), it.ino())).ok();
    let named = PathBuf::from(&mapping.path);
    if identity(&named).is_some_and(|it| Some(it) == identity(path)) { named } else { path.into() }
}

/// Returns the functions at an address, the innermost first.
fn named<R: Reader>(
    mut frames: Option<FrameIter<'_, R>>,
    symbol: Option<&str>,
    bare: &Frame,
) -> Vec<Frame> {
    let mut named = Vec::new();
    while let Some(Ok(Some(frame))) = frames.as_mut().map(FrameIter::next) {
        let function = frame.function.as_ref();
        let function = function.and_then(|it| it.demangle().ok().map(Cow::into_owned));
        let location = frame.location.as_ref();
        named.push(Frame {
            function,
            file: location.and_then(|it| it.file).map(ToOwned::to_owned),
            line: location.and_then(|it| it.line),
            is_inlined: true,
            ..bare.clone()
        });
    }
    if named.is_empty() {
        named.push(bare.clone());
    }
    // The outermost is the function itself.
    if let Some(outermost) = named.last_mut() {
        outermost.is_inlined = false;
        // Debug information that is just lines has names without paths.
        if let Some(symbol) = symbol {
            outermost.function = Some(demangle_auto(symbol.into(), None).into_owned());
        }
    }
    named
}
