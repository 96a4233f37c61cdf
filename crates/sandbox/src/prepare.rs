//! Makes a sandbox, and says what of it this machine enforces.

use brigade_sys::confine::{Confinement, has_filters, landlock_version};
use brigade_sys::descriptors::above_streams;

use crate::error::SandboxError;
use crate::files::rules;
use crate::filters::filter;
use crate::namespaces::isolation;
use crate::prepared::Prepared;
use crate::report::{FILES, Layer, NO_FILTERS, PORTS, SIGNALS, SandboxReport, needs_landlock};
use crate::sandbox::{Level, Sandbox};

impl Sandbox {
    /// Opens all paths and makes the rules and filters.
    ///
    /// # Errors
    /// [`SandboxError`] names the path that could not be opened, or what this machine lacks.
    pub fn prepare(&self) -> Result<Prepared, SandboxError> {
        prepare(self)
    }
}

fn prepare(sandbox: &Sandbox) -> Result<Prepared, SandboxError> {
    let isolation = isolation(sandbox)?;
    // A program gets other files in the places of the streams, before it enters the sandbox.
    let files = rules(sandbox)?.map(above_streams).transpose().map_err(|error| {
        SandboxError::Make { part: "rules for files", problem: error.to_string() }
    })?;
    let closing = Confinement::default().restrictions(files);
    let may_close = closing.probe().is_ok();
    let landlock = if may_close { landlock_version() } else { 0 };
    let may = |plan: Confinement| plan.restrictions(None).probe().is_ok();
    // Made even if the kernel has no filters, so that a wrong name is an error everywhere.
    let filters = vec![filter(sandbox)?];
    let has_filters =
        has_filters() && may(Confinement { filters: filters.clone(), ..Confinement::default() });
    let writes = !sandbox.write.is_empty() || !sandbox.execute.is_empty();
    let capabilities = (sandbox.level > Level::NoNetwork).then_some(writes);
    let may_give_up = may(Confinement { capabilities, ..Confinement::default() });
    let mut report = report(sandbox, landlock, has_filters);
    if !may_give_up {
        report.missing(Layer::Privileges, "this process may not give up its capabilities");
    }
    let makes_namespaces = isolation.as_ref().map(|it| report.try_isolation(it));
    if !report.is_complete() && !sandbox.best_effort {
        return Err(SandboxError::Missing { missing: report.missing_layers() });
    }
    let files = closing.files.filter(|_| may_close);
    let confinement = Confinement {
        isolation: isolation.filter(|_| makes_namespaces == Some(true)),
        files: files.is_some(),
        capabilities: capabilities.filter(|_| may_give_up),
        limits: Vec::new(),
        lowers_limits: sandbox.level == Level::Strict,
        filters: if has_filters { filters } else { Vec::new() },
        before_initializer: sandbox.before_initializer,
    };
    Ok(Prepared { confinement, files, clears_environment: sandbox.level == Level::Strict, report })
}

/// Returns what holds on a kernel with this version of Landlock.
fn report(sandbox: &Sandbox, landlock: u32, filters: bool) -> SandboxReport {
    let mut report = SandboxReport::default();
    let by_landlock = format!("Landlock, interface {landlock}");
    let strict = sandbox.level == Level::Strict;
    if sandbox.level > Level::NoNetwork {
        match landlock {
            FILES.. => report.enforced(Layer::Files, &by_landlock),
            _ => report.missing(Layer::Files, needs_landlock(FILES, landlock, "6.2")),
        }
    }
    let rights = match sandbox.level {
        Level::NoNetwork => "no_new_privs",
        Level::ReadOnly => "no_new_privs, and capabilities are dropped",
        Level::Strict => "no_new_privs, capabilities are dropped, and limits only fall",
    };
    report.enforced(Layer::Privileges, rights);
    if filters {
        report.enforced(Layer::Calls, "seccomp");
    } else {
        report.missing(Layer::Calls, NO_FILTERS);
    }
    let means = match (filters, sandbox.ports.is_empty(), landlock) {
        (false, ..) => Err(NO_FILTERS.to_owned()),
        (true, false, ..PORTS) => Err(needs_landlock(PORTS, landlock, "6.7")),
        (true, false, _) => Ok(format!("seccomp; ports: {by_landlock}")),
        (true, true, ..PORTS) => Ok("seccomp".to_owned()),
        (true, true, _) => Ok(format!("seccomp; {by_landlock}")),
    };
    let is_alone = strict || sandbox.isolate && sandbox.ports.is_empty();
    match means {
        Err(reason) => report.missing(Layer::Network, reason),
        Ok(means) if is_alone || landlock >= SIGNALS => report.enforced(Layer::Network, means),
        Ok(means) => {
            let reason = needs_landlock(SIGNALS, landlock, "6.12");
            let open = format!("{means}; abstract sockets of others are open: {reason}");
            report.partly(Layer::Network, open);
        }
    }
    if sandbox.level > Level::NoNetwork {
        match (landlock, strict && !sandbox.processes) {
            _ if !filters => report.missing(Layer::Processes, NO_FILTERS),
            (SIGNALS.., _) => report.enforced(Layer::Processes, format!("seccomp; {by_landlock}")),
            (_, true) => report.enforced(Layer::Processes, "seccomp"),
            _ => report.missing(Layer::Processes, needs_landlock(SIGNALS, landlock, "6.12")),
        }
    }
    if strict {
        report.enforced(Layer::Environment, "empty, but for what `env` sets");
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Hold;

    #[test]
    fn what_an_old_kernel_lacks_is_named() {
        let missing = |sandbox: &Sandbox, landlock, filters| {
            report(sandbox, landlock, filters).missing_layers().join(", ")
        };
        let strict = Sandbox::strict();
        assert_eq!(missing(&strict, 7, true), "");
        assert_eq!(missing(&strict, 3, true), "", "signals are filtered");
        assert!(missing(&strict, 2, true).starts_with("files (needs Landlock interface 3"));
        assert!(missing(&strict, 0, true).contains("no Landlock"));
        assert!(missing(&strict, 7, false).contains("seccomp"));
        assert!(missing(&Sandbox::read_only(), 7, false).contains("other processes"));
        let connecting = Sandbox::strict().connect(443);
        assert!(missing(&connecting, 3, true).starts_with("network (needs Landlock interface 4"));
        let starting = Sandbox::strict().allow_processes();
        assert!(missing(&starting, 5, true).starts_with("other processes"));
        assert!(missing(&Sandbox::read_only(), 5, true).starts_with("other processes"));
        assert_eq!(missing(&Sandbox::read_only(), 6, true), "");
        assert_eq!(missing(&Sandbox::no_network(), 0, true), "");
        for (sandbox, is_whole) in [
            (Sandbox::no_network(), false),
            (Sandbox::no_network().isolate(), true),
            (Sandbox::strict(), true),
        ] {
            let report = report(&sandbox, 5, true);
            let network = report.get(Layer::Network);
            assert_eq!(matches!(network, Some(Hold::Enforced(_))), is_whole, "{report}");
        }
    }

    #[test]
    fn wrong_paths_and_calls_are_named() {
        let error = Sandbox::strict().read("/nowhere/to/be/found").prepare().unwrap_err();
        assert!(error.to_string().contains("/nowhere/to/be/found"), "{error}");
        let error = Sandbox::strict().allow_call("sockets").prepare().unwrap_err();
        assert!(error.to_string().contains("sockets"), "{error}");
    }

    #[test]
    fn a_path_that_depends_on_its_reader_is_refused() {
        for path in ["/proc/self", "/proc/self/status", "/proc/mounts", "/dev/fd"] {
            for sandbox in [Sandbox::strict(), Sandbox::strict().isolate()] {
                let error = sandbox.read(path).prepare().unwrap_err().to_string();
                assert!(
                    error.contains(path) && error.contains("entries of this process"),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn rights_that_cannot_be_given_up_are_missing() {
        let strict = Sandbox::strict();
        let layer = Sandbox::no_network().prepare().unwrap().into_restrictions();
        let thread = std::thread::spawn(move || {
            // As many layers of Landlock as the kernel allows to this thread.
            let add = || {
                let files = layer.files.as_ref().map(|it| it.try_clone().unwrap());
                Confinement::default().restrictions(files).apply()
            };
            assert!((0..20).any(|_| add().is_err()));
            let error = strict.prepare().unwrap_err().to_string();
            assert!(error.contains("files (") && error.contains("refuses"), "{error}");
            let prepared = strict.best_effort().prepare().unwrap();
            assert!(prepared.files.is_none());
            let files = prepared.report.get(Layer::Files);
            assert!(matches!(files, Some(Hold::Missing(_))), "{files:?}");
        });
        thread.join().unwrap();
    }

    #[test]
    fn this_machine_makes_every_level() {
        for sandbox in [Sandbox::no_network(), Sandbox::read_only(), Sandbox::strict()] {
            let sandbox = sandbox.write("/tmp").connect(80).allow_call("fchmodat").best_effort();
            let prepared = sandbox.prepare().unwrap();
            let calls = prepared.report.get(Layer::Calls);
            assert_eq!(
                matches!(calls, Some(Hold::Enforced(_))),
                !prepared.confinement.filters.is_empty()
            );
        }
    }
}
