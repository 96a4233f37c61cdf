//! Resources of which jobs take what they need.

use crate::common::TestDir;

/// Takes the piece as a folder, which fails if another job has it, until all pieces were taken.
const LOCKS: &str = "mkdir gpu-$BRIGADE_RESOURCE_GPU || exit 1; echo >>taken; \
    until test $(wc -l <taken) -ge 2; do sleep 0.01; done; rmdir gpu-$BRIGADE_RESOURCE_GPU #";

#[test]
fn jobs_that_run_at_a_time_have_different_pieces() {
    let dir = TestDir::new();
    let options = ["--jobs", "4", "--no-pin", "--resource", "gpu=2", "--needs", "gpu=1"];
    let ran =
        dir.run(&[&options[..], &["--shell", "--", LOCKS, ":::", "1", "2", "3", "4"]].concat());
    assert_eq!((ran.status, ran.stderr.contains("File exists")), (0, false), "{}", ran.stderr);
}

#[test]
fn a_job_learns_what_it_has() {
    let dir = TestDir::new();
    dir.write(
        "jobs.toml",
        r#"
        [defaults]
        needs = { gpu = 2 }
        [[job]]
        shell = "echo $BRIGADE_RESOURCE_GPU,$BRIGADE_RESOURCE_MEMORY"
        [[job]]
        label = "other"
        needs = { memory = "1G" }
        shell = "echo $BRIGADE_RESOURCE_GPU,$BRIGADE_RESOURCE_MEMORY"
        "#,
    );
    let options = ["--resource", "gpu=2", "--resource", "memory=4G", "--keep-order", "jobs.toml"];
    let ran = dir.run(&options);
    assert_eq!(ran.stdout, "0,1,\n,1073741824\n", "{}", ran.stderr);
}

#[test]
fn needs_that_can_never_be_met_are_errors() {
    let dir = TestDir::new();
    for (options, text) in [
        (&["--needs", "gpu=1"][..], "there is no resource \"gpu\": none is declared"),
        (&["--resource", "gpu=2", "--needs", "gpu=3"], "and there are only 2"),
        (&["--resource", "gpu=1", "--resource", "gpu=1"], "declared twice"),
        (&["--resource", "gpu"], "expected a name and an amount, such as gpu=4"),
        (&["--resource", "GPU=1"], "cannot name a resource"),
    ] {
        let ran = dir.run(&[options, &["--", "true", ":::", "x"]].concat());
        assert!(ran.status != 0 && ran.stderr.contains(text), "{options:?}: {}", ran.stderr);
    }
    dir.write("jobs.toml", "[[job]]\ncommand = [\"true\"]\nneeds = { gpu = 1 }\n");
    let ran = dir.run(&["jobs.toml"]);
    assert!(ran.status == 1 && ran.stderr.contains("no resource \"gpu\""), "{}", ran.stderr);
}
