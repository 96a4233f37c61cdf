//! The default options of `brigade parallel`: profiles, configuration files and `$PARALLEL`.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;

use super::spelling::Read;
use crate::defaults::Source;

/// Returns the words of each source, the weakest first.
pub(super) fn sources(own: &Read) -> Result<Vec<Source>, clap::Error> {
    if own.options.iter().any(|option| option == "--plain") {
        return Ok(Vec::new());
    }
    let profile = |option: &OsString| {
        option.to_str().and_then(|option| option.strip_prefix("--profile=")).map(str::to_owned)
    };
    let profiles: Vec<String> = own.options.iter().filter_map(profile).collect();
    let mut sources = Vec::new();
    if profiles.is_empty() {
        let mut files = vec![PathBuf::from("/etc/parallel/config")];
        files.extend(folders().into_iter().map(|folder| folder.join("config")));
        files.extend(env::home_dir().map(|home| home.join(".parallelrc")));
        for file in files {
            sources.extend(Source::file(&file)?.unwrap_or_default());
        }
    }
    for name in profiles {
        let path = PathBuf::from(&name);
        let found = if name.starts_with("./") || name.starts_with('/') {
            Source::file(&path)?
        } else {
            let files = folders().into_iter().map(|folder| folder.join(&name));
            let mut found = None;
            for file in files {
                found = Source::file(&file)?.or(found);
            }
            found
        };
        let missing = || {
            let text = format!("there is no profile `{name}` in ~/.parallel\n");
            clap::Error::raw(ErrorKind::InvalidValue, text)
        };
        sources.extend(found.ok_or_else(missing)?);
    }
    sources.extend(Source::variable("PARALLEL")?);
    Ok(sources)
}

/// Returns the folders of configuration files and profiles.
fn folders() -> Vec<PathBuf> {
    let own = env::var_os("PARALLEL_HOME").map(PathBuf::from);
    let in_config = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let in_home = env::home_dir().map(|home| home.join(".parallel"));
    own.into_iter().chain(in_config.map(|folder| folder.join("parallel"))).chain(in_home).collect()
}
