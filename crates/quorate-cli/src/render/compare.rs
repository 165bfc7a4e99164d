//! Two runs on one artifact, side by side.

use quorate::service::compare::{ComparedRun, Comparison, Finding, PositionChange};
use quorate_diagnostics::render::TextOptions;

use super::layout::{hanging, table};
use super::paint::{Paint, finish, one_line};

/// A comparison for people.
pub(crate) fn human(compared: &Comparison, options: TextOptions) -> String {
    let text = match compared.same_text {
        true => "the same text",
        false => "another text",
    };
    let mut out = format!("{}\n\n", Paint::Strong.on(&one_line(&compared.artifact)));
    let runs = [("a", &compared.a), ("b", &compared.b)].map(|(name, run)| run_row(name, run));
    out.push_str(&table(&["", "run", "opened", "verdict", "why"], runs.into(), 0, options.width));
    let verdict = match compared.verdict_changed {
        true => "another verdict",
        false => "the same verdict",
    };
    out.push_str(&format!("\n{verdict}, {text}\n"));
    let findings = &compared.findings;
    let gone: Vec<&Finding> = findings.gone.iter().collect();
    let new: Vec<&Finding> = findings.new.iter().collect();
    let kept: Vec<&Finding> = findings.kept.iter().map(|kept| &kept.b).collect();
    for (name, all) in [("Gone", gone), ("New", new), ("Kept", kept)] {
        if all.is_empty() {
            continue;
        }
        out.push_str(&format!("\n{}\n", Paint::Strong.on(&format!("{name} ({})", all.len()))));
        all.into_iter().for_each(|finding| out.push_str(&finding_lines(finding, options.width)));
    }
    if !compared.positions.is_empty() {
        let rows = compared.positions.iter().map(position_row).collect();
        out.push_str(&format!("\n{}", table(&["member", "a", "b", ""], rows, 0, options.width)));
    }
    for note in &compared.notes {
        out.push_str(&format!("\n{}\n", one_line(note)));
    }
    finish(&out, options)
}

fn run_row(name: &str, run: &ComparedRun) -> Vec<String> {
    let verdict = run.verdict.as_deref().map_or_else(
        || Paint::Absent.on("open"),
        |word| Paint::of_word(word).on(&one_line(word).to_uppercase()),
    );
    vec![
        name.to_owned(),
        run.run.clone(),
        run.opened.clone(),
        verdict,
        one_line(run.because.as_deref().unwrap_or_default()),
    ]
}

fn finding_lines(finding: &Finding, width: usize) -> String {
    let line = finding.line.map_or_else(String::new, |line| format!(", line {line}"));
    let quote = match finding.quote.is_empty() {
        true => String::new(),
        false => format!(" “{}”", one_line(&finding.quote)),
    };
    let label = format!("{}{line}:{quote}", one_line(&finding.by));
    let mut out = hanging("-", &format!("{label} {}", one_line(&finding.issue)), 0, width);
    if let Some(fix) = &finding.fix {
        out.push_str(&hanging("fix:", &one_line(fix), 2, width));
    }
    out
}

fn position_row(position: &PositionChange) -> Vec<String> {
    let word = |word: &Option<String>| word.as_deref().map_or_else(|| "-".to_owned(), one_line);
    let changed = if position.changed { Paint::Strong.on("changed") } else { String::new() };
    vec![one_line(&position.member), word(&position.a), word(&position.b), changed]
}

#[cfg(test)]
mod tests {
    use quorate::service::compare::{Findings, KeptFinding, Kind, SCHEMA};

    use super::*;

    #[test]
    fn findings_are_grouped_by_what_became_of_them() {
        let run = |run: &str, verdict: &str| ComparedRun {
            run: run.to_owned(),
            opened: "2026-03-04T05:05:00.007Z".to_owned(),
            verdict: Some(verdict.to_owned()),
            because: None,
            artifact_sha256: None,
        };
        let finding = |by: &str, quote: &str, issue: &str| Finding {
            by: by.to_owned(),
            line: (!quote.is_empty()).then_some(3),
            quote: quote.to_owned(),
            issue: issue.to_owned(),
            fix: None,
        };
        let position = |member: &str, a: &str, b: &str| PositionChange {
            member: member.to_owned(),
            a: Some(a.to_owned()),
            b: Some(b.to_owned()),
            changed: a != b,
        };
        let compared = Comparison {
            schema: SCHEMA,
            kind: Kind::Review,
            artifact_type: "blog_post".to_owned(),
            artifact: "draft.md".to_owned(),
            a: run("r1", "REVISE"),
            b: run("r2", "SHIP"),
            same_text: false,
            verdict_changed: true,
            findings: Findings {
                kept: vec![KeptFinding { a: finding("tone", "q", "old"), b: finding("tone", "q", "dull") }],
                new: vec![finding("facts", "", "no source\u{1b}[31m")],
                gone: Vec::new(),
            },
            positions: vec![position("tone", "blocks", "passes")],
            notes: Vec::new(),
        };
        let text = human(&compared, TextOptions::default());
        for shown in [
            "another verdict, another text",
            "New (1)\n- facts: no source",
            "Kept (1)\n- tone, line 3: “q” dull",
            "passes",
        ] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        assert!(!text.contains("Gone") && !text.contains('\u{1b}'), "{text}");
    }
}
