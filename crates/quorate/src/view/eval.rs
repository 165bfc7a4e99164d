//! Evaluations as documents. Every share is shown with its counts and its interval.

use crate::eval::{
    CoherenceEstimate, CoherenceReport, Conversions, Difference, MIN_CLUSTERS, Share, Steadiness,
};
use crate::view::wording::{amount, cost};
use crate::view::{Doc, Table, Text, Tone};

impl CoherenceEstimate {
    /// The expected cost, in a heading and a line for each executor.
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        self.estimate.add_to(&mut doc, &amount(self.texts as u64, "text"));
        if let Some(ms) = self.expected_ms {
            let minutes = ms.div_ceil(60_000);
            doc.line(format!(
                "By the last review of this council it takes about {}.",
                amount(minutes, "minute")
            ));
        }
        doc
    }
}

impl CoherenceReport {
    /// How steady the council is, what it finds and what round 2 changes.
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        doc.title("Coherence of the council");
        let found = &self.coherence;
        doc.line(format!(
            "{} with variants: {} texts, judged by {}. {}{}.",
            amount(found.drafts as u64, "draft"),
            found.texts,
            self.executor,
            amount(self.spent.calls.into(), "call"),
            if self.model_asked { cost(&self.spent.usage) } else { String::new() }
        ));
        doc.line("A range holds the true share in 95 of 100 cases.");
        doc.heading("Steady: the same verdict where nothing changed?");
        let row = |judge: &Steadiness| {
            let word = if judge.unstable { Text::toned(Tone::Bad, "unstable") } else { Text::default() };
            let missing = if judge.missing == 0 { String::new() } else { judge.missing.to_string() };
            [Text::strong(&judge.name), share(judge.flips), share(judge.changes), word, missing.into()]
        };
        let judges = || std::iter::once(&found.council).chain(&found.members);
        let headings = ["judge", "same text, changed", "same meaning, changed", "", "missing"];
        doc.table(Table::new(headings).with_rows(judges().map(row)).filled());
        doc.heading("Sharp: found the defect that was put in, and left its harmless twin alone?");
        let row =
            |judge: &Steadiness| [Text::strong(&judge.name), share(judge.recall), share(judge.false_alarms)];
        doc.table(Table::new(["judge", "defects found", "false alarms"]).with_rows(judges().map(row)));
        doc.heading("By kind of defect: the council");
        let kinds = found.kinds.iter().map(|kind| {
            [Text::code(&kind.kind), kind.says.as_str().into(), share(kind.recall), share(kind.false_alarms)]
        });
        doc.table(Table::new(["kind", "what it is", "found", "false alarms"]).with_rows(kinds));
        if let Some(round2) = &found.round2 {
            doc.heading("Round 2: what became of first answers");
            let row = |name: &str, changed: &Conversions| {
                [Text::strong(name), share(changed.to_wrong), share(changed.to_right)]
            };
            let mut table = Table::new(["", "right became wrong", "wrong became right"]);
            table.row(row("after reading the others", &round2.together));
            if let Some(alone) = &round2.alone {
                table.row(row("control: without reading them", alone));
            }
            doc.table(table);
            if let Some(gain) = &round2.gain {
                doc.line(gain_sentence(gain));
            }
        }
        doc.end_section();
        self.notes.iter().for_each(|note| doc.line(note));
        doc.line(Text::from("The runs are in ").and(Text::code(&self.ledger)).and("."));
        doc
    }
}

/// `17 of 21 (60–92%)`; a dash without an observation.
fn share(share: Option<Share>) -> Text {
    share.map_or_else(
        || Text::faint("–"),
        |Share { hits, of, interval, .. }| {
            let percent = |value: f64| format!("{:.0}", value * 100.0);
            format!("{hits} of {of} ({}–{}%)", percent(interval.low), percent(interval.high)).into()
        },
    )
}

/// Whether reading each other gave more right answers.
fn gain_sentence(gain: &Difference) -> String {
    let points = |value: f64| format!("{:+.1}", value * 100.0);
    let Difference { mean, interval, rows, clusters, .. } = gain;
    let range = format!(
        "{} points ({} to {}; {rows} answers on {clusters} drafts)",
        points(*mean),
        points(interval.low),
        points(interval.high)
    );
    const WHAT: &str = "That reading each other changes the share of right answers is not shown";
    if *clusters < MIN_CLUSTERS {
        let drafts = amount(*clusters, "draft");
        let are = if *clusters == 1 { "is" } else { "are" };
        return format!("{WHAT}: it takes at least {MIN_CLUSTERS} drafts, and there {are} {drafts}.");
    }
    match gain.is_shown() {
        true if *mean > 0.0 => format!("Reading each other adds right answers: {range}."),
        true => format!("Reading each other costs right answers: {range}."),
        false => format!("{WHAT}: {range}."),
    }
}
