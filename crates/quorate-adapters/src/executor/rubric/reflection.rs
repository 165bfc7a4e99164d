//! The rubric as the one who reflects: whatever was found wrong in several runs of one type of artifact, in the same
//! words, becomes a playbook that says how to do without it. `reflection/recurring.rs` decides what is the same,
//! what may be said to a producer in `reflection/wording.rs`.
//!
//! Material is never followed: a body is made from what members found and advised, never from the words of an artifact.

mod issue;
mod recurring;
mod wording;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use quorate_diagnostics::word_list::WordList;
use quorate_kernel::entropy::sha256_hex;
use quorate_protocol::answers::reflection::{Judgement, TraitVerdict};
use quorate_protocol::{Json, Part, PartKind};
use serde_json::json;

use issue::{RecurringIssue, Run};
use recurring::Runs;
use wording::ForbiddenWords;

const WORDS: &str = include_str!("words/reflection.txt");

/// How many runs are named as evidence.
const MAX_EVIDENCE: usize = 10;
/// The most words of a slug.
const MAX_SLUG_WORDS: usize = 6;
/// The longest slug, in bytes.
const MAX_SLUG_BYTES: usize = 60;
/// The longest title, in characters.
const MAX_TITLE_CHARS: usize = 200;
/// The longest note, in characters.
const MAX_NOTE_CHARS: usize = 200;
/// Words that tell no finding from another.
static STOP_WORDS: WordList = WordList::new(WORDS, "stop words");

/// The proposals from the outcomes of earlier runs, as an answer in the requested form.
pub(super) fn deltas(parts: &[Part]) -> Json {
    let part = |kind: PartKind| parts.iter().find(|part| part.kind == kind).map_or("", |part| &*part.text);
    let read = Runs::read(part(PartKind::Runs));
    let runs = read.all();
    let unsaid = ForbiddenWords::from_runs(&runs);
    let mut there = ExistingPlaybooks::read(part(PartKind::Playbooks));
    let mut proposed: Vec<(usize, String, Json)> = Vec::new();
    for topic in recurring::recurring_issues(&runs) {
        let Some(body) = wording::body(&topic, &unsaid) else { continue };
        if let Some(slug) = there.reserve_slug(&topic.key, &body) {
            proposed.push((topic.runs.len(), slug.clone(), add_delta(&slug, &body, &topic)));
        }
    }
    proposed.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    json!({"deltas": proposed.into_iter().map(|(_, _, delta)| delta).collect::<Vec<_>>()})
}

/// What the rubric says of a fragment: that it cannot say.
pub(super) fn judgement() -> Json {
    let reason = "The rubric reads by rule and compares words; whether a fragment goes against a trait takes somebody \
                  who understands both.";
    Judgement { verdict: TraitVerdict::Unsure, traits: Vec::new(), reason: reason.to_owned() }.to_json()
}

/// The playbooks that are there, and those that are proposed beside them.
struct ExistingPlaybooks {
    /// The slugs that say what they say already.
    slugs: BTreeSet<String>,
    bodies: BTreeSet<String>,
    /// The slugs that are not free.
    used_slugs: BTreeSet<String>,
}

impl ExistingPlaybooks {
    /// Reads the part. What is not of its form is not there.
    fn read(text: &str) -> ExistingPlaybooks {
        let mut there = ExistingPlaybooks {
            slugs: BTreeSet::new(),
            bodies: BTreeSet::new(),
            used_slugs: BTreeSet::new(),
        };
        let Ok(Json::Array(all)) = serde_json::from_str(text) else { return there };
        for playbook in &all {
            let field = |key: &str| playbook.get(key).and_then(Json::as_str);
            if let Some(slug) = field("slug") {
                there.used_slugs.insert(slug.to_owned());
            }
            // Also archived ones: they were archived for a reason.
            there.slugs.extend(field("slug").map(str::to_owned));
            there.bodies.extend(field("body").map(wording::comparison_key));
        }
        there
    }

    /// The slug of a playbook with this body, which is there from now on; `None` where it is there already. A slug that
    /// stands for something else gets a few letters of the topic's own.
    fn reserve_slug(&mut self, key: &str, body: &str) -> Option<String> {
        let folded = wording::comparison_key(body);
        let short = slug(key);
        if self.slugs.contains(&short) || self.bodies.contains(&folded) {
            return None;
        }
        let other = format!("{short}-{}", &sha256_hex(key.as_bytes())[..6]);
        let free = [short, other].into_iter().find(|slug| !self.used_slugs.contains(slug))?;
        self.used_slugs.insert(free.clone());
        self.bodies.insert(folded);
        Some(free)
    }
}

fn add_delta(slug: &str, body: &str, topic: &RecurringIssue<'_>) -> Json {
    let evidence = topic.runs.iter().take(MAX_EVIDENCE);
    let evidence: Vec<Json> = evidence
        .map(|run| json!({"kind": "run", "ref": run.id, "note": evidence_note(run, topic)}))
        .collect();
    let tags: Vec<&str> = topic.types.iter().copied().filter(|word| is_tag(word)).collect();
    json!({
        "op": "add", "slug": slug, "title": truncate(wording::first_sentence(body), MAX_TITLE_CHARS), "body": body,
        "lock_check": [], "evidence": evidence, "tags": tags,
    })
}

/// What a run shows, in one line.
fn evidence_note(run: &Run<'_>, topic: &RecurringIssue<'_>) -> String {
    let by: BTreeSet<&str> =
        topic.findings.iter().filter(|(of, _)| of.id == run.id).map(|(_, raised)| raised.member).collect();
    let by: Vec<&str> = by.into_iter().filter(|by| !by.is_empty()).collect();
    let by =
        if by.is_empty() { String::new() } else { format!(" by {}", super::peer_answers::join_names(&by)) };
    let about = if run.subject.is_empty() { run.artifact_type } else { run.subject };
    truncate(&wording::one_line(&format!("Raised{by} in {about}")), MAX_NOTE_CHARS)
}

/// The words that identify a topic, in kebab case; without any, letters of its hash.
fn slug(key: &str) -> String {
    let mut slug = String::new();
    let plain =
        |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase()) && !STOP_WORDS.contains(word);
    for word in key.split(' ').filter(plain).filter(|word| !word.is_empty()).take(MAX_SLUG_WORDS) {
        if slug.len() + 1 + word.len() <= MAX_SLUG_BYTES {
            slug.push_str(if slug.is_empty() { "" } else { "-" });
            slug.push_str(word);
        }
    }
    match slug.len() {
        0 | 1 => format!("habit-{}", &sha256_hex(key.as_bytes())[..8]),
        _ => slug,
    }
}

/// Whether a text can be a tag.
fn is_tag(text: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(rest)
}

/// A text of at most so many characters.
fn truncate(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most - 1).collect();
    format!("{}…", head.trim_end())
}
