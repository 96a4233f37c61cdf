//! A trace under construction.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

/// The id of the only process in a trace.
const PROCESS: u32 = 1;

/// A trace under construction.
///
/// Dropping it leaves the trace without its end, which viewers accept; see
/// [`array`](Self::array).
#[derive(Debug)]
pub struct Trace<W> {
    pub(crate) out: W,
    /// Written before the next event.
    separator: &'static str,
}

/// An event, in the order in which its fields are written.
#[derive(Serialize)]
struct Event<'a, A> {
    name: &'a str,
    #[serde(rename = "cat", skip_serializing_if = "str::is_empty")]
    category: &'a str,
    ph: &'static str,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    /// The scope of a point in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    #[serde(rename = "cname", skip_serializing_if = "Option::is_none")]
    color: Option<&'a str>,
    args: A,
}

#[derive(Serialize)]
struct Name<'a> {
    name: &'a str,
}

impl<W: Write> Trace<W> {
    /// Begins a trace that is a JSON array, which viewers accept without its end.
    ///
    /// # Errors
    /// If writing fails, here and in all other methods.
    pub fn array(mut out: W) -> io::Result<Self> {
        out.write_all(b"[")?;
        Ok(Self { out, separator: "\n" })
    }

    /// Names the whole trace.
    pub fn name_process(&mut self, name: &str) -> io::Result<()> {
        self.event(&Event { name: "process_name", ph: "M", tid: None, ..event(Name { name }) })
    }

    /// Names a row.
    pub fn name_row(&mut self, row: u32, name: &str) -> io::Result<()> {
        self.event(&Event { name: "thread_name", ph: "M", tid: Some(row), ..event(Name { name }) })
    }

    /// Adds a slice of time with a name and a category to a row. The time is its start and its
    /// duration. Slices of one row must not overlap in part.
    ///
    /// A color is one of those that the format names, such as `terrible` for red and `bad` for
    /// orange. Not all viewers show it.
    pub fn slice(
        &mut self,
        row: u32,
        (name, category): (&str, &str),
        (start, duration): (Duration, Duration),
        color: Option<&str>,
        arguments: &impl Serialize,
    ) -> io::Result<()> {
        let (tid, ts, dur) = (Some(row), Some(micros(start)), Some(micros(duration)));
        self.event(&Event { name, category, ph: "X", tid, ts, dur, color, ..event(arguments) })
    }

    /// Adds a point in time with a name and a category to a row.
    pub fn point(
        &mut self,
        row: u32,
        (name, category): (&str, &str),
        at: Duration,
        arguments: &impl Serialize,
    ) -> io::Result<()> {
        let (tid, ts, s) = (Some(row), Some(micros(at)), Some("t"));
        self.event(&Event { name, category, ph: "i", tid, ts, s, ..event(arguments) })
    }

    /// Sets the values of a counter from this time on.
    pub fn counter(&mut self, name: &str, at: Duration, values: &impl Serialize) -> io::Result<()> {
        self.event(&Event { name, ph: "C", ts: Some(micros(at)), ..event(values) })
    }

    fn event(&mut self, event: &impl Serialize) -> io::Result<()> {
        self.out.write_all(self.separator.as_bytes())?;
        self.separator = ",\n";
        Ok(serde_json::to_writer(&mut self.out, event)?)
    }

    /// Flushes the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes the end of the trace, and returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(b"\n]\n")?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Returns microseconds with three digits after the point.
fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e9).round() / 1e3
}

fn event<A>(args: A) -> Event<'static, A> {
    let (tid, ts, dur, s, color) = (None, None, None, None, None);
    Event { name: "", category: "", ph: "", pid: PROCESS, tid, ts, dur, s, color, args }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fill(trace: &mut Trace<Vec<u8>>) -> io::Result<()> {
        trace.name_process("p")?;
        trace.name_row(1, "row \"1\"\n")?;
        trace.slice(
            1,
            ("a", "ok"),
            (Duration::ZERO, Duration::from_nanos(1_500)),
            None,
            &json!({ "n": 1 }),
        )?;
        trace.point(1, ("died", "death"), Duration::from_micros(2), &json!({}))?;
        let times = (Duration::from_micros(2), Duration::ZERO);
        trace.slice(1, ("b", "fail"), times, Some("terrible"), &json!({}))?;
        trace.counter("queue", Duration::from_micros(3), &json!({ "waiting": 4 }))
    }

    #[test]
    fn events_have_the_fields_of_the_format() -> io::Result<()> {
        let mut trace = Trace::array(Vec::new())?;
        fill(&mut trace)?;
        let events: Vec<Value> = serde_json::from_slice(&trace.finish()?)?;
        let expected = [
            json!({ "name": "process_name", "ph": "M", "pid": 1, "args": { "name": "p" } }),
            json!({ "name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": { "name": "row \"1\"\n" } }),
            json!({ "name": "a", "cat": "ok", "ph": "X", "pid": 1, "tid": 1, "ts": 0.0, "dur": 1.5, "args": { "n": 1 } }),
            json!({ "name": "died", "cat": "death", "ph": "i", "pid": 1, "tid": 1, "ts": 2.0, "s": "t", "args": {} }),
            json!({ "name": "b", "cat": "fail", "ph": "X", "pid": 1, "tid": 1, "ts": 2.0, "dur": 0.0, "cname": "terrible", "args": {} }),
            json!({ "name": "queue", "ph": "C", "pid": 1, "ts": 3.0, "args": { "waiting": 4 } }),
        ];
        assert_eq!(events, expected);
        Ok(())
    }

    #[test]
    fn an_array_without_its_end_lacks_only_the_bracket() -> io::Result<()> {
        let mut trace = Trace::array(Vec::new())?;
        fill(&mut trace)?;
        let mut text = String::from_utf8(trace.out.clone()).unwrap();
        text.push(']');
        assert_eq!(serde_json::from_str::<Vec<Value>>(&text)?.len(), 6);
        Ok(())
    }

    #[test]
    fn an_array_is_complete_with_any_number_of_events() -> io::Result<()> {
        let whole = |trace: Trace<Vec<u8>>| -> io::Result<usize> {
            Ok(serde_json::from_slice::<Vec<Value>>(&trace.finish()?)?.len())
        };
        assert_eq!(whole(Trace::array(Vec::new())?)?, 0);
        let mut trace = Trace::array(Vec::new())?;
        fill(&mut trace)?;
        assert_eq!(whole(trace)?, 6);
        Ok(())
    }
}
