//! The text format of Prometheus, version 0.0.4.
//!
//! Not through `prometheus-client`: that has no summaries, and writes a format that
//! `promtool check metrics` does not read (decision 19).

use std::fmt::{self, Write};

use super::family::{Family, Kind, Labels, Value, quantiles, sum};
use super::table::families;
use crate::PoolSnapshot;

/// The media type of [`prometheus_text`].
pub const PROMETHEUS_MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns the metrics of these pools in the text format that Prometheus and compatible systems
/// read. No pool may occur twice.
///
/// ```
/// use brigade_metrics::PoolSnapshot;
/// use brigade_metrics::export::prometheus_text;
///
/// let mut snapshot = PoolSnapshot::default();
/// snapshot.succeeded = 2;
/// let text = prometheus_text(&[snapshot]);
/// assert!(text.contains("brigade_tasks_finished_total{pool=\"0\",outcome=\"succeeded\"} 2\n"));
/// ```
pub fn prometheus_text(pools: &[PoolSnapshot]) -> String {
    let mut text = String::new();
    for family in families(pools) {
        // A string takes everything.
        let _ = write_family(&mut text, &family);
    }
    text
}

fn write_family(out: &mut String, family: &Family) -> fmt::Result {
    let Family { name, help, samples } = family;
    let kind = match family.kind() {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Summary => "summary",
    };
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")?;
    for (labels, value) in samples {
        match value {
            Value::Count(count) => sample(out, (name, ""), labels, None, count)?,
            Value::Number(number) => sample(out, (name, ""), labels, None, number)?,
            Value::Times(times) => {
                for (quantile, seconds) in quantiles(times) {
                    sample(out, (name, ""), labels, Some(quantile), seconds)?;
                }
                sample(out, (name, "_sum"), labels, None, sum(times))?;
                sample(out, (name, "_count"), labels, None, times.count)?;
            }
        }
    }
    Ok(())
}

fn sample(
    out: &mut String,
    (name, suffix): (&str, &str),
    labels: &Labels,
    quantile: Option<&str>,
    value: impl fmt::Display,
) -> fmt::Result {
    write!(out, "{name}{suffix}")?;
    let labels = labels.iter().map(|(name, value)| (*name, value.as_str()));
    for (index, (name, value)) in
        labels.chain(quantile.map(|quantile| ("quantile", quantile))).enumerate()
    {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        write!(out, "{}{name}=\"{value}\"", if index == 0 { '{' } else { ',' })?;
    }
    writeln!(out, "}} {value}")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::tests::example;

    #[test]
    fn labels_are_escaped() {
        let text = prometheus_text(&[example(1)]);
        let label = r#"label="<img src=x> \"filter\" \\ line\nbreak"} 2900"#;
        assert!(text.contains(label), "{text}");
    }

    #[test]
    fn a_summary_has_quantiles_a_sum_and_a_count() {
        let text = prometheus_text(&[example(1)]);
        for line in [
            "# TYPE brigade_task_run_seconds summary\n",
            "brigade_task_run_seconds{pool=\"1\",quantile=\"0.5\"} 0.0009\n",
            "brigade_task_run_seconds_sum{pool=\"1\"} 14.04\n",
            "brigade_task_run_seconds_count{pool=\"1\"} 12000\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    #[test]
    fn every_line_follows_the_grammar() {
        let text = prometheus_text(&[example(3)]);
        let mut family = "";
        for line in text.lines() {
            if let Some(description) = line.strip_prefix("# ") {
                family = description.split(' ').nth(1).unwrap();
                continue;
            }
            let (metric, value) = line.rsplit_once("} ").unwrap();
            let (name, labels) = metric.split_once('{').unwrap();
            assert!(["", "_sum", "_count"].contains(&name.strip_prefix(family).unwrap()), "{line}");
            assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
            let unescaped = labels.replace(r"\\", "").replace("\\\"", "");
            assert_eq!(
                unescaped.matches('"').count(),
                2 * unescaped.matches("=\"").count(),
                "{line}"
            );
        }
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "says that a tool is missing")]
    fn promtool_accepts_the_text() {
        let command = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut promtool) = command else {
            eprintln!("left out: promtool (Debian package `prometheus`) is not installed");
            return;
        };
        let pools = [1, 2].map(|pool| PoolSnapshot { pool, ..example(256) });
        promtool.stdin.take().unwrap().write_all(prometheus_text(&pools).as_bytes()).unwrap();
        let output = promtool.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        // Advice of its linter does not change the exit status in all versions.
        assert_eq!((output.stdout, output.stderr), (Vec::new(), Vec::new()));
    }
}
