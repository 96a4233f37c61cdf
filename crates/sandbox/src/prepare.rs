//! Makes a sandbox, and says what of it this machine enforces.

use brigade_sys::confine::{Confinement, Restrictions, landlock_version};

use crate::error::SandboxError;
use crate::files::rules;
use crate::filters::filter;
use crate::namespaces::isolation;
use crate::prepared::Prepared;
use crate::report::{Layer, report};
use crate::sandbox::{Level, Sandbox};

impl Sandbox {
    /// Opens all paths and makes the rules and filters.
    ///
    /// # Errors
    /// [`SandboxError`] names the path that could not be opened, or what this machine lacks.
    pub fn prepare(&self) -> Result<Prepared, SandboxError> {
        let isolation = isolation(self)?;
        let version = landlock_version();
        let rules = rules(self, version)?;
        let closing = Confinement { own: rules.own.clone(), files: true, ..Confinement::default() };
        let mut prepared = Prepared { confinement: closing.clone(), rules, ..Prepared::default() };
        let closing = closing.restrictions(prepared.files()?);
        let may_close = may(&closing)?;
        let landlock = if may_close { version } else { 0 };
        let tries = |plan: Confinement| may(&plan.restrictions(None));
        // Made even if the kernel has no filters, so that a wrong name is an error everywhere.
        let filters = vec![filter(self)?];
        let has_filters =
            tries(Confinement { filters: filters.clone(), ..Confinement::default() })?;
        let writes = !self.write.is_empty() || !self.execute.is_empty();
        let capabilities = (self.level > Level::NoNetwork).then_some(writes);
        let may_give_up = tries(Confinement { capabilities, ..Confinement::default() })?;
        let mut report = report(self, landlock, has_filters);
        if !may_give_up {
            report.missing(Layer::Privileges, "this process may not give up its capabilities");
        }
        let makes_namespaces = isolation.as_ref().map(|it| report.try_isolation(it));
        if !report.is_complete() && !self.best_effort {
            return Err(SandboxError::Missing { missing: report.missing_layers() });
        }
        prepared.confinement = Confinement {
            isolation: isolation.filter(|_| makes_namespaces == Some(true)),
            files: closing.files.is_some() && may_close,
            capabilities: capabilities.filter(|_| may_give_up),
            lowers_limits: self.level == Level::Strict,
            filters: if has_filters { filters } else { Vec::new() },
            before_initializer: self.before_initializer,
            ..prepared.confinement
        };
        Ok(Prepared { clears_environment: self.level == Level::Strict, report, ..prepared })
    }
}

/// Returns whether a process may give up these rights here.
fn may(restrictions: &Restrictions) -> Result<bool, SandboxError> {
    Ok(restrictions.probe().map_err(SandboxError::make("trial, which needs a process"))?.is_ok())
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
    fn a_path_that_depends_on_its_reader_is_only_read() {
        for path in ["/proc/self", "/proc/self/status", "/proc/mounts", "/dev/fd"] {
            let strict = Sandbox::strict();
            for sandbox in [
                strict.clone().isolate().read(path),
                strict.clone().for_program().read(path),
                strict.clone().write(path),
                strict.execute(path),
            ] {
                let error = sandbox.prepare().unwrap_err().to_string();
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
        let layer = Sandbox::no_network().prepare().unwrap().into_restrictions().unwrap();
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
            assert!(prepared.files().unwrap().is_none());
            let files = prepared.report.get(Layer::Files);
            assert!(matches!(files, Some(Hold::Missing(_))), "{files:?}");
        });
        thread.join().unwrap();
    }

    #[test]
    fn a_trial_that_cannot_be_made_is_no_missing_layer() {
        let word = |code: u16, jf: u8, k: i64| {
            u64::from(code) | u64::from(jf) << 24 | u64::try_from(k).unwrap() << 32
        };
        for (call, error) in
            [(libc::SYS_clone, libc::EAGAIN), (libc::SYS_landlock_restrict_self, libc::ENOMEM)]
        {
            let refused = i64::from(libc::SECCOMP_RET_ERRNO) | i64::from(error);
            let filter = vec![
                word(0x20, 0, 0),
                word(0x15, 1, call),
                word(0x06, 0, refused),
                word(0x06, 0, libc::SECCOMP_RET_ALLOW.into()),
            ];
            let thread = std::thread::spawn(|| {
                let busy = Confinement { filters: vec![filter], ..Confinement::default() };
                busy.restrictions(None).apply().unwrap();
                let report =
                    Sandbox::strict().best_effort().prepare().map(|it| it.report.to_string());
                assert!(report.unwrap_err().to_string().contains("cannot make its trial"));
            });
            thread.join().unwrap();
        }
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
