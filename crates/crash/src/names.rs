//! Finds the functions and lines of addresses.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use addr2line::{Loader, demangle_auto};
use brigade_sys::catch_panic::catch_panic;
use brigade_sys::sealed::SealedBytes;
use brigade_sys::sync::Mutex;

use crate::elf::Elf;
use crate::frame::{Frame, place};
use crate::mapping::{self, Mapping};
use crate::unwind::Call;

/// The debug information of files that this process has mapped too. They are few, and stay.
static LOADED: Mutex<Option<HashMap<PathBuf, Option<Loader>>>> = Mutex::new(None);

/// Returns the frames of the calls, with those of inlined functions.
pub(crate) fn frames(mappings: &[Mapping], calls: &[Call]) -> Vec<Frame> {
    let own = mapping::own();
    let mut copies = HashMap::new();
    let mut frames = Vec::new();
    for call in calls {
        let mapping = mapping::find(mappings, call.address).filter(|it| it.path.starts_with('/'));
        let bare = place(mappings, call.address);
        let Some(mapping) = mapping else {
            frames.push(bare);
            continue;
        };
        let path = mapping.file();
        let is_own = own.iter().any(|own| own.is_same_file(mapping));
        let found = if is_own {
            let mut files = LOADED.lock();
            let file = files.get_or_insert_default().entry(path.clone());
            let loader = file.or_insert_with(|| load(&named_path(mapping, &path)));
            loader.as_ref().map(|loader| named(loader, &bare))
        } else {
            // Only the worker has loaded it, so it may be anything.
            let loader = copies.entry(path.clone()).or_insert_with(|| copy(&path));
            let named = || loader.as_ref().map(|loader| named(loader, &bare));
            catch_panic(named).ok().flatten()
        };
        frames.extend(found.filter(|found| !found.is_empty()).unwrap_or_else(|| vec![bare]));
    }
    frames
}

/// Returns the path that a file has in its folder, where its debug information may lie beside it,
/// unless there is another file of this name now.
fn named_path(mapping: &Mapping, path: &Path) -> PathBuf {
    let identity = |path: &Path| fs::metadata(path).map(|it| (it.dev(), it.ino())).ok();
    let named = PathBuf::from(&mapping.path);
    if identity(&named).is_some_and(|it| Some(it) == identity(path)) { named } else { path.into() }
}

fn load(path: &Path) -> Option<Loader> {
    Loader::new(path).ok()
}

/// Loads a copy of a file, which nobody can change.
fn copy(path: &Path) -> Option<Loader> {
    let bytes = Elf::open(path)?.copy()?;
    let copy = SealedBytes::create("brigade-module", &[&bytes]).ok()?;
    let path = format!("/proc/self/fd/{}", copy.as_fd().as_raw_fd());
    catch_panic(|| load(Path::new(&path))).ok().flatten()
}

/// Returns the functions at an address, the innermost first.
fn named(loader: &Loader, bare: &Frame) -> Vec<Frame> {
    let mut named = Vec::new();
    if let Ok(mut frames) = loader.find_frames(bare.offset) {
        while let Ok(Some(frame)) = frames.next() {
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
    }
    if named.is_empty() {
        named.push(bare.clone());
    }
    // The outermost is the function itself.
    if let Some(outermost) = named.last_mut() {
        outermost.is_inlined = false;
        // Debug information that is just lines has names without paths.
        if let Some(symbol) = loader.find_symbol(bare.offset) {
            outermost.function = Some(demangle_auto(symbol.into(), None).into_owned());
        }
    }
    named
}
