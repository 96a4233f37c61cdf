//! Finds processes and sends signals to them.

pub use brigade_testkit_core::processes::*;

use brigade_sys::process::environment_of;

/// Returns the pids of living processes that were started with the variable `name` set to `value`.
///
/// The environment counts as it was at the start of the process, whatever the process changed
/// since.
pub fn with_variable(name: &str, value: &str) -> Vec<u32> {
    let wanted = format!("{name}={value}").into_bytes();
    all()
        .filter(|pid| {
            let environment = environment_of(*pid);
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
        })
        .filter(|pid| is_alive(*pid))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_found_by_its_environment() {
        let mut child =
            Command::new("sleep").arg("60").env("BRIGADE_TESTKIT_COOKIE", "found").spawn().unwrap();
        crate::wait_until("the child in its own program", crate::BOUND, || {
            with_variable("BRIGADE_TESTKIT_COOKIE", "found") == [child.id()]
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(with_variable("BRIGADE_TESTKIT_COOKIE", "found").is_empty());
    }
}
