//! Measures the example `service` under load: requests per second and their 99th percentile, and
//! the same with one request in a thousand that crashes the decoder.
//!
//! The load generator is `wrk`, which has to be installed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use brigade_sys::process::command;

use crate::folders;
use crate::load::Load;
use crate::report::{Outcome, Report};

/// Connections that each send one request after the other.
const CONNECTIONS: u32 = 16;

/// The example in one of its forms.
struct Service {
    process: Child,
    address: String,
}

/// Builds the example.
pub(crate) fn build() -> Outcome<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = command(cargo);
    build.args(["build", "--release", "--package", "brigade-example-service"]);
    let status = build.current_dir(folders::root()).status()?;
    if status.success() { Ok(()) } else { Err("cannot build the example `service`".into()) }
}

/// `arguments` and `link` choose the form of the service.
pub(crate) fn measure(arguments: &[&str], link: &str, load: &Load, report: &mut Report) {
    for (name, crashes) in [("plain", 0), ("crashing", 1_000)] {
        match requests(arguments, link, load, crashes) {
            Ok((rate, p99)) => {
                report.record(format!("{name}_per_second"), rate);
                report.record(format!("{name}_p99_seconds"), p99);
            }
            Err(error) => report.miss(format!("{name}_per_second"), error.to_string()),
        }
    }
}

/// Returns the rate of answers and the 99th percentile of the time until one arrives. One request
/// in `crashes` aborts the decoder, or none if it is 0.
fn requests(arguments: &[&str], link: &str, load: &Load, crashes: u32) -> Outcome<(f64, f64)> {
    let mut service = Service::start(arguments, link)?;
    let mut wrk = command("wrk");
    wrk.args(["--threads", "1", "--timeout", "5", "--latency"])
        .args(["--connections", &CONNECTIONS.to_string()])
        .args(["--duration", &format!("{}s", load.service_seconds)])
        .arg("--script")
        .arg(script())
        .arg(format!("http://{}/thumbnail", service.address))
        .args(["--", &picture(load)?, &crashes.to_string()]);
    let output = output(&mut wrk)?;
    if service.process.try_wait()?.is_some() {
        let answered = word_before(&output, "requests in").unwrap_or("some");
        return Err(format!("the service died after {answered} requests").into());
    }
    let answered: u32 =
        word_before(&output, "requests in").ok_or("wrk prints no count")?.parse()?;
    let failed = word_after(&output, "Non-2xx or 3xx responses:").map_or(Ok(0), str::parse)?;
    // Refusals are fast: without this check, they would look like a good rate.
    let intended: u32 = (answered + CONNECTIONS).checked_div(crashes).unwrap_or(0);
    if failed > intended {
        return Err(format!("{failed} of {answered} requests failed").into());
    }
    let rate = word_after(&output, "Requests/sec:").ok_or("wrk prints no rate")?.parse()?;
    Ok((rate, seconds(p99(&output).ok_or("wrk prints no p99")?)?))
}

/// Returns the p99 of the output. The table before the distribution may contain "99%" as well.
fn p99(output: &str) -> Option<&str> {
    let (_, distribution) = output.split_once("Latency Distribution")?;
    word_after(distribution, "99%")
}

fn output(wrk: &mut Command) -> Outcome<String> {
    let output = wrk
        .output()
        .map_err(|error| format!("wrk, the load generator, cannot be started: {error}"))?;
    Ok(String::from_utf8(output.stdout)?)
}

impl Service {
    fn start(arguments: &[&str], link: &str) -> Outcome<Self> {
        let mut process = command(folders::target().join("release/service"))
            .args(arguments)
            .env("BRIGADE_LINK", link)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut greeting = String::new();
        let output = process.stdout.take().ok_or("no pipe")?;
        let mut service = Self { process, address: String::new() };
        BufReader::new(output).read_line(&mut greeting)?;
        let address = greeting.trim().strip_prefix("listening on http://");
        address.ok_or("the service prints no address")?.clone_into(&mut service.address);
        Ok(service)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have died already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn script() -> PathBuf {
    folders::root().join("benches/src/service/requests.lua")
}

/// Returns the path of the JPEG that all requests contain.
fn picture(load: &Load) -> Outcome<String> {
    let list = fs::read_to_string(&load.pictures)?;
    let is_jpeg = |path: &&str| Path::new(path).extension().is_some_and(|end| end == "jpg");
    Ok(list.lines().find(is_jpeg).ok_or("no picture")?.to_owned())
}

fn word_after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.split_once(label)?.1.split_whitespace().next()
}

fn word_before<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.split_once(label)?.0.split_whitespace().last()
}

/// Parses a duration as wrk prints it.
fn seconds(text: &str) -> Outcome<f64> {
    let units = [("us", 1e-6), ("ms", 1e-3), ("m", 60.0), ("s", 1.0)];
    let found = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (number, factor) = found.ok_or_else(|| format!("not a duration: {text}"))?;
    Ok(number.parse::<f64>()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    20.11ms    3.22ms  41.87ms   80.99%
    Req/Sec   839.21     54.00     0.98k    70.00%
  Latency Distribution
     50%   10.51ms
     99%   37.67ms
  5042 requests in 3.01s, 15.77MB read
Requests/sec:   1677.60
";

    #[test]
    fn the_output_of_wrk_is_read() {
        assert_eq!(word_after(OUTPUT, "Requests/sec:"), Some("1677.60"));
        assert_eq!(word_before(OUTPUT, "requests in"), Some("5042"));
        let p99 = seconds(p99(OUTPUT).unwrap()).unwrap();
        assert!((p99 - 0.037_67).abs() < 1e-9);
        let micros = seconds("900.00us").unwrap();
        assert!((micros - 9e-4).abs() < 1e-9);
        assert!(seconds("7 days").is_err());
    }
}
