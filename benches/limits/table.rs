//! The table that is printed at the end.

use std::fmt;
use std::time::Duration;

/// A quantity with its unit.
#[derive(Debug, Clone, Copy)]
pub(super) enum Measure {
    /// Time.
    Time(Duration),
    /// Memory, in KiB.
    Memory(u64),
    /// A number of things.
    Count(u64),
    /// Bytes in a time, in MB/s. Of rates more is better: ratios are turned round.
    Rate(f64),
    /// Things in a second.
    PerSecond(f64),
    /// A part of a whole, from 0 to 1.
    Share(f64),
    /// Billionths of a US dollar.
    Money(u64),
}

impl Measure {
    fn number(self) -> f64 {
        match self {
            Measure::Time(time) => time.as_secs_f64(),
            Measure::Memory(kib) => kib as f64,
            Measure::Count(count) | Measure::Money(count) => count as f64,
            Measure::Share(share) => share,
            Measure::Rate(rate) | Measure::PerSecond(rate) => 1.0 / rate,
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Measure::Time(time) if time.as_secs_f64() >= 1.0 => format!("{:.2} s", time.as_secs_f64()),
            Measure::Time(time) if time.as_secs_f64() >= 0.1 => format!("{:.0} ms", time.as_secs_f64() * 1e3),
            Measure::Time(time) => format!("{:.2} ms", time.as_secs_f64() * 1e3),
            Measure::Memory(kib) => format!("{:.1} MiB", *kib as f64 / 1024.0),
            Measure::Count(count) => count.to_string(),
            Measure::Rate(rate) => format!("{rate:.0} MB/s"),
            Measure::PerSecond(rate) => format!("{rate:.0}/s"),
            Measure::Share(share) => format!("{:.0}%", share * 100.0),
            Measure::Money(nanos) => format!("${:.4}", *nanos as f64 / 1e9),
        };
        out.pad(&text)
    }
}

/// One line.
struct Row {
    what: String,
    measured: Measure,
    limit: Option<Measure>,
}

/// All lines, in groups: a measurement of ours first, then what the others took for the same.
#[derive(Default)]
pub(super) struct Table {
    rows: Vec<Row>,
    peers: Vec<(usize, String, Measure)>,
    notes: Vec<String>,
}

impl Table {
    /// A measurement with its limit.
    pub(super) fn limited(&mut self, what: impl Into<String>, measured: Measure, limit: Measure) {
        self.push(what.into(), measured, Some(limit));
    }

    /// A measurement without a limit.
    pub(super) fn unlimited(&mut self, what: impl Into<String>, measured: Measure) {
        self.push(what.into(), measured, None);
    }

    /// Another tool's measurement of the last line.
    pub(super) fn peer(&mut self, who: impl Into<String>, measured: Measure) {
        self.peers.push((self.rows.len().saturating_sub(1), who.into(), measured));
    }

    /// What could not be measured, and why.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    fn push(&mut self, what: String, measured: Measure, limit: Option<Measure>) {
        eprintln!("  {what}: {measured}");
        self.rows.push(Row { what, measured, limit });
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{:<62} {:>10} {:>10} {:>8}", "what", "measured", "limit", "ratio")?;
        for (at, row) in self.rows.iter().enumerate() {
            write!(out, "{:<62} {:>10}", row.what, row.measured)?;
            match row.limit {
                Some(limit) => {
                    let ratio = row.measured.number() / limit.number();
                    writeln!(out, " {limit:>10} {ratio:>8.2}{}", if ratio > 1.0 { " over" } else { "" })?;
                }
                None => writeln!(out)?,
            }
            for (_, who, measured) in self.peers.iter().filter(|(of, ..)| *of == at) {
                let ratio = row.measured.number() / measured.number();
                writeln!(out, "{:<62} {measured:>10} {:>10} {ratio:>8.3}", format!("  against {who}"), "")?;
            }
        }
        for note in &self.notes {
            writeln!(out, "note: {note}")?;
        }
        Ok(())
    }
}
