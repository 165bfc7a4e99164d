//! The report file of a run: one page with its content, its proof, and the script that checks it. It is readable without
//! scripts.
//!
//! The page is a function of the proof and the texts alone, so that `quorate ledger check-proof` can draw it again and
//! compare. The templates of documents, findings, positions and conclusions are those of the server's pages.

use std::sync::{Arc, LazyLock};

use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quorate::convene::{AppliedRule, Fragment, Message, Node, Violation};
use quorate::ledger::VerifiedProof;
use quorate::reports::{
    ConsultationRecord, Embedded, Numbered, OutcomeRecord, ReportContent, ReportFile, ReportFormat,
    canonical_json, hex, sha256_hex, unhex,
};
use quorate::runs::Recorded;
use quorate::view::wording::dollars;
use quorate::{Finding, Money};
use serde_json::Value;

use crate::assets::{REPORT_CHECK, compact, compact_style};
use crate::pages::assembly_run::{self, Board, Reason};
use crate::pages::at::{At, Form, pointer_part};
use crate::pages::document::{self, Line};
use crate::pages::review_run::{self, Places, Position};
use crate::pages::wording::{Mark, digit_groups, instant, minute, plain};

/// The beginning of every report.
const BEGINS: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\"";

const PROOF: &str = "<script type=\"application/octet-stream\" id=\"proof\">";
const TEXT: &str = "<script type=\"application/octet-stream\" class=\"text\" data-input=\"";
const GENERATOR: &str = "<meta name=\"generator\" content=\"";
const SCRIPT_END: &str = "</script>";

/// The style and the script of a report.
static STYLE: LazyLock<String> = LazyLock::new(|| compact_style(include_str!("assets/style.css")));
static SCRIPT: LazyLock<String> = LazyLock::new(|| compact(REPORT_CHECK));

/// The placeholder for the number of facts, which is known after drawing all of them.
const COUNT: &str = " data-facts=\"\"";

/// This program, as reports name it.
fn program() -> String {
    format!("Quorate {}", env!("CARGO_PKG_VERSION"))
}

/// How `quorate ledger check-proof` reads and draws reports.
pub const FORMAT: ReportFormat = ReportFormat { begins: BEGINS, embedded, draw };

/// Draws a report.
///
/// # Errors
/// The reason why it cannot be drawn.
pub fn draw(file: &ReportFile) -> Result<String, String> {
    let html = page(file).render().map_err(|error| error.to_string())?;
    // Quotes of texts are escaped, so these are the attributes.
    let facts = html.matches(" data-at=\"").count();
    Ok(html.replacen(COUNT, &format!(" data-facts=\"{facts}\""), 1))
}

/// The policy of a report: its own style and script, and nothing else.
fn policy() -> String {
    let hash = |text: &str| {
        let hash = unhex(&sha256_hex(text.as_bytes())).unwrap_or_default();
        format!("'sha256-{}'", STANDARD.encode(hash))
    };
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        hash(&SCRIPT),
        hash(&STYLE)
    )
}

/// Extracts the embedded parts of a report. Drawing the report again proves that they are where a browser finds them.
fn embedded(html: &str) -> Result<Embedded, String> {
    let program = html.split_once(GENERATOR).and_then(|(_, rest)| rest.split_once('"'));
    let program = program.ok_or("it does not name the program that drew it")?.0.to_owned();
    let (_, rest) = html.split_once(PROOF).ok_or("it is not a report: it embeds no proof")?;
    let (proof, mut rest) = rest.split_once(SCRIPT_END).ok_or("its proof has no end")?;
    let proof = decoded(proof).ok_or("its proof is not the base64 of a text")?;
    let mut texts = Vec::new();
    while let Some((_, after)) = rest.split_once(TEXT) {
        let (input, after) = after.split_once("\">").ok_or("a text has no place")?;
        let (text, after) = after.split_once(SCRIPT_END).ok_or("a text has no end")?;
        let input = input.parse().map_err(|_| "a text's place is not a number")?;
        texts.push((input, Arc::from(decoded(text).ok_or("a text is not the base64 of a text")?)));
        rest = after;
    }
    Ok(Embedded { proof, texts, program, this_program: self::program() })
}

fn decoded(base64: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(base64).ok()?).ok()
}

#[derive(Template)]
#[template(path = "report.html")]
struct ReportPage<'f> {
    policy: String,
    program: String,
    style: &'static str,
    script: &'static str,
    content: &'f ReportContent,
    /// The final outcome, or an empty one.
    decided: &'f OutcomeRecord,
    /// Where the outcome is.
    outcome: At,
    /// The number of the record that decided; empty without one.
    record: String,
    mark: Mark,
    mark_at: String,
    title: String,
    title_at: String,
    opened: String,
    instant: String,
    is_assembly: bool,
    notes: &'f [String],
    /// Each vote, with its reason.
    reasons: Vec<Reason>,
    facts: Vec<Fact>,
    has_text: bool,
    lines: Vec<Line>,
    input: Option<usize>,
    findings: Vec<(At, Finding)>,
    /// The subject of an assembly.
    texts: Vec<ShownText>,
    positions: Vec<Position>,
    board: Option<Board>,
    fragments: &'f [Fragment],
    messages: &'f [Message],
    tree: Vec<(At, usize, Node)>,
    rules: &'f [AppliedRule],
    violations: Vec<(At, &'f Violation)>,
    answers: Vec<ShownAnswer>,
    asked: Vec<AskedRow>,
    total: String,
    proof: &'f VerifiedProof,
    proof_base64: String,
    embedded: Vec<(usize, String)>,
}

impl ReportPage<'_> {
    fn is_deciding(&self, rule: &AppliedRule) -> bool {
        self.decided.decision.as_ref().is_some_and(|decision| decision.rule.as_ref() == Some(&rule.id))
    }
}

/// A name and a value, with the attribute that says where it is from.
struct Fact {
    name: String,
    value: String,
    at: String,
}

struct ShownText {
    name: String,
    lines: Vec<Line>,
    input: Option<usize>,
}

struct ShownAnswer {
    at: At,
    member: String,
    step: String,
    status: String,
    fields: Vec<Fact>,
}

/// What a question went through, and what that took.
struct AskedRow {
    at: At,
    member: String,
    step: String,
    executor: String,
    cells: Vec<Cell>,
}

struct Cell {
    value: String,
    is_number: bool,
    at: String,
}

/// The outcome of a run without one.
static UNDECIDED: LazyLock<OutcomeRecord> = LazyLock::new(OutcomeRecord::default);

/// The page of a report.
fn page(file: &ReportFile) -> ReportPage<'_> {
    let content = &file.content;
    let (record, at, outcome) = match &content.outcome {
        Some(outcome) => (outcome.n.to_string(), At::record(outcome.n), &outcome.data),
        None => (String::new(), At::default(), &*UNDECIDED),
    };
    let word_at = if outcome.verdict.is_some() { "/verdict" } else { "/decision/result" };
    let (title, title_at) = title(content);
    let found = content.findings();
    let is_assembly = content.is_assembly();
    let document = file.texts.first().filter(|_| !is_assembly);
    let lines = |text: &str| document::lines(text, found.iter().map(|(_, finding)| finding));
    ReportPage {
        policy: policy(),
        program: program(),
        style: &STYLE,
        script: &SCRIPT,
        content,
        decided: outcome,
        record,
        mark: Mark::of(word(content, outcome)),
        mark_at: outcome.word().map_or_else(String::new, |_| at.upper(word_at)),
        title,
        title_at,
        opened: minute(content.opened_ms),
        instant: instant(content.opened_ms),
        is_assembly,
        notes: match &content.report {
            Some(Recorded::Review(report)) => &report.notes,
            Some(Recorded::Decision(report)) => &report.notes,
            None => &[],
        },
        reasons: reasons(content, outcome, &at),
        facts: facts(content, outcome, &at),
        has_text: document.is_some(),
        lines: document.map(|text| lines(&text.text)).unwrap_or_default(),
        input: document.map(|text| text.input),
        texts: file
            .texts
            .iter()
            .filter(|_| is_assembly)
            .map(|text| ShownText {
                name: text.name.clone(),
                lines: document::lines(&text.text, [].iter()),
                input: Some(text.input),
            })
            .collect(),
        findings: found.into_iter().map(|(place, finding)| (at.item("/findings", place), finding)).collect(),
        positions: positions(content, outcome, &at),
        board: outcome.decision.clone().map(|count| assembly_run::board(count, at.under("/decision"))),
        fragments: &outcome.fragments,
        messages: &outcome.messages,
        tree: assembly_run::tree(&outcome.nodes, &at),
        rules: &outcome.rules,
        violations: content.violations.iter().map(|refused| (At::record(refused.n), &refused.data)).collect(),
        answers: content.consultations.iter().filter(|_| is_assembly).map(answer).collect(),
        asked: content.consultations.iter().map(asked_row).collect(),
        total: total(&content.consultations),
        proof: &file.proven,
        proof_base64: STANDARD.encode(&file.proof),
        embedded: file.texts.iter().map(|text| (text.input, STANDARD.encode(&*text.text))).collect(),
        outcome: at,
    }
}

/// What the run came to in a word; `None` while it is open.
fn word<'a>(content: &'a ReportContent, outcome: &'a OutcomeRecord) -> Option<&'a str> {
    outcome.word().or(match &content.report {
        Some(Recorded::Review(report)) if report.is_superseded() => Some(report.verdict_word()),
        _ => None,
    })
}

/// The subject of the run, and its place in the records.
fn title(content: &ReportContent) -> (String, String) {
    let at = At::record(0);
    let of = |pointer, text: &Option<String>| Some((text.clone()?, at.to(pointer)));
    let said = content
        .opened
        .as_ref()
        .and_then(|opened| of("/title", &opened.title).or_else(|| of("/subject", &opened.subject)));
    said.unwrap_or_else(|| (String::new(), String::new()))
}

/// The votes in the answers of a vote.
fn reasons(content: &ReportContent, outcome: &OutcomeRecord, at: &At) -> Vec<Reason> {
    let Some(decision) = &outcome.decision else { return Vec::new() };
    let decided = at.under("/decision");
    let reason = |asked: &Numbered<ConsultationRecord>| {
        let answer = asked.data.answer.as_ref()?.as_object()?;
        Reason::of(&asked.data.member, answer, At::record(asked.n), (decision, &decided))
    };
    content.consultations.iter().filter_map(reason).collect()
}

fn facts(content: &ReportContent, outcome: &OutcomeRecord, at: &At) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: Option<String>, at: String| {
        let value = value.filter(|value| !value.is_empty());
        facts.extend(value.map(|value| Fact { name: name.to_owned(), value, at }));
    };
    if let Some(opened) = &content.opened {
        let first = At::record(0);
        add("Protocol", Some(opened.protocol.clone()), first.to("/protocol"));
        add("Subject", opened.subject.clone().filter(|_| opened.title.is_some()), first.to("/subject"));
        let artifact_type = opened.artifact_type.as_deref().map(plain);
        add("Type", artifact_type.filter(|_| !content.is_assembly()), first.plain("/artifact_type"));
        add("Tier", opened.tier.map(|tier| tier.to_string()), first.to("/tier"));
        let policy = opened.setup["policy"].as_str();
        add("Policy", policy.map(str::to_owned), first.to("/setup/policy"));
    }
    add("Reason", outcome.code.as_deref().map(plain), at.plain("/code"));
    add("Missing", Some(outcome.missing.join(", ")), at.list("/missing"));
    let risk = outcome.risk.as_ref();
    add("Severity", risk.map(|risk| risk.severity.to_string()), at.to("/risk/severity"));
    add("Level", risk.and_then(|risk| risk.level.clone()), at.to("/risk/level"));
    let yes_no = |yes| if yes { "yes" } else { "no" }.to_owned();
    add("Call a human", outcome.should_escalate.map(yes_no), at.yes_no("/shouldEscalate"));
    add("Rounds", outcome.rounds.map(|rounds| rounds.to_string()), at.to("/rounds"));
    add("Ended by", outcome.ended_by.as_deref().map(plain), at.plain("/endedBy"));
    add("Objecting", Some(outcome.objecting.join(", ")), at.list("/objecting"));
    facts
}

/// Each deliberator's answers; how they count, where only the outcome is there.
fn positions(content: &ReportContent, outcome: &OutcomeRecord, at: &At) -> Vec<Position> {
    let Some(Recorded::Review(report)) = &content.report else { return Vec::new() };
    let place = |step: &str, member: &str| {
        content.consultation(step, member).map(|asked| At::record(asked.n)).unwrap_or_default()
    };
    let of = |deliberator: &quorate::review::Deliberator| {
        let id = &deliberator.id;
        let counted = outcome.deliberators.iter().position(|counted| counted.id == *id);
        let counted = counted.map(|counted| at.under(&format!("/deliberators/{counted}")));
        let places =
            Places { first: place("r1", id), second: place("r2", id), counted: counted.unwrap_or_default() };
        review_run::position(report.rounds, deliberator, places)
    };
    let mut positions: Vec<Position> = report.deliberators.iter().map(of).collect();
    positions.sort_by_key(|position| !position.has_changed);
    positions
}

/// An answer, field by field.
fn answer(asked: &Numbered<ConsultationRecord>) -> ShownAnswer {
    let ConsultationRecord { member, step, status, answer, text, .. } = &asked.data;
    let at = At::record(asked.n);
    let field = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::String(text) => text.clone(),
            other => canonical_json(other).unwrap_or_default(),
        };
        Fact { name: plain(name), value, at: at.to(&format!("/answer{}", pointer_part(name))) }
    };
    let mut fields: Vec<Fact> =
        answer.iter().filter_map(Value::as_object).flat_map(|answer| answer.iter().map(field)).collect();
    fields.extend(text.clone().map(|value| Fact { name: "message".to_owned(), value, at: at.to("/text") }));
    ShownAnswer {
        member: member.to_string(),
        step: step.to_string(),
        status: plain(status.as_str()),
        fields,
        at,
    }
}

fn asked_row(asked: &Numbered<ConsultationRecord>) -> AskedRow {
    let ConsultationRecord { member, step, executor, model, spent, .. } = &asked.data;
    let at = At::record(asked.n);
    let number = |count: Option<u64>, pointer: &str| Cell {
        value: count.map(digit_groups).unwrap_or_default(),
        is_number: true,
        at: count.map_or_else(String::new, |_| at.shown(pointer, Form::Number)),
    };
    let model = Cell {
        value: model.clone().unwrap_or_default(),
        is_number: false,
        at: model.as_ref().map_or_else(String::new, |_| at.to("/model")),
    };
    let price = Cell {
        value: spent.money.as_ref().map(|price| price.amount()).unwrap_or_default(),
        is_number: true,
        at: spent.money.as_ref().map_or_else(String::new, |_| at.to("/spent/money/amount")),
    };
    let cells = vec![
        model,
        number(spent.calls, "/spent/calls"),
        number(spent.tokens_in, "/spent/tokens_in"),
        number(spent.tokens_out, "/spent/tokens_out"),
        price,
        number(spent.ms, "/spent/ms"),
    ];
    AskedRow { member: member.to_string(), step: step.to_string(), executor: executor.clone(), cells, at }
}

/// What all questions of the table took together.
fn total(asked: &[Numbered<ConsultationRecord>]) -> String {
    let sum = |of: fn(&ConsultationRecord) -> Option<u64>| {
        asked.iter().filter_map(|asked| of(&asked.data)).fold(0, u64::saturating_add)
    };
    let mut parts = vec![format!("{} calls", digit_groups(sum(|asked| asked.spent.calls)))];
    let (read, written) = (sum(|asked| asked.spent.tokens_in), sum(|asked| asked.spent.tokens_out));
    if read + written > 0 {
        parts.push(format!("{} tokens read, {} written", digit_groups(read), digit_groups(written)));
    }
    let price: Money = asked.iter().filter_map(|asked| asked.data.spent.money).sum();
    if price > Money::ZERO {
        parts.push(format!("US$ {}", dollars(price)));
    }
    format!("Together {}.", parts.join(", "))
}

/// The root that a proof's checkpoint names, in hexadecimal digits.
pub(crate) fn root(proven: &VerifiedProof) -> String {
    hex(&proven.tree.root)
}

/// Whether a proof leaves out the data of a record.
pub(crate) fn omits_data(proven: &VerifiedProof) -> bool {
    proven.records.iter().any(|record| record.data.is_none())
}
