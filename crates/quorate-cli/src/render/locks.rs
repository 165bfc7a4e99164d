//! The hits of locked traits in a text, as text and as JSON.

use std::fmt::Write as _;
use std::sync::Arc;

use quorate_diagnostics::render::TextOptions;
use quorate_diagnostics::render::machine::diagnostics_json;
use quorate_playbook::lock::Trait;
use quorate_protocol::locks::{Layer, excerpt, excerpt_parts};
use serde_json::{Value, json};

use super::layout::{Paint, finish, one_line, sanitize};
use super::layout::{prose, table};
use crate::arguments::HumanOrJson;
use quorate::service::resolve::{HitPosition, LockTest, TraitHits};

/// The most places shown of one trait.
const SHOWN: usize = 20;

/// The hits as text: by trait, then traits without hits.
pub(crate) fn human(tested: &LockTest, options: TextOptions) -> String {
    let (hit, silent): (Vec<&TraitHits>, Vec<&TraitHits>) =
        tested.traits.iter().partition(|checked| !checked.hits.is_empty());
    let mut out = match (tested.traits.len(), hit.len()) {
        (0, _) => format!("{} has no locked traits.\n", one_line(&tested.assembly)),
        (1, 0) => "The one locked trait does not hit.\n".to_owned(),
        (all, 0) => format!("None of {all} locked traits hits.\n"),
        (all, some) => format!("{some} of {all} locked {} {}.\n", plural(all, "trait"), hits(some)),
    };
    for checked in &hit {
        let _ = writeln!(out, "\n{}  {}", Paint::Strong.on(&one_line(&checked.text)), declaration(checked));
        for found in checked.hits.iter().take(SHOWN) {
            let [before, within, after] = excerpt_parts(&tested.text, &found.hit.span);
            let _ = writeln!(
                out,
                "  {}:{}:{}  {}",
                one_line(tested.file.as_deref().unwrap_or("text")),
                found.line,
                found.column,
                found.hit.layer.as_str()
            );
            let marked = Paint::Bad.on(&format!("«{}»", sanitize(&within)));
            let _ =
                writeln!(out, "    {}{marked}{}", sanitize(before.trim_start()), sanitize(after.trim_end()));
        }
        if checked.hits.len() > SHOWN {
            let _ = writeln!(out, "  and at {} more places", checked.hits.len() - SHOWN);
        }
    }
    if !hit.is_empty() && !silent.is_empty() {
        out.push_str("\nNot hit:\n");
    }
    for checked in &silent {
        let _ = writeln!(out, "  {}  {}", one_line(&checked.text), declaration(checked));
    }
    let mut layers: Vec<Layer> =
        hit.iter().flat_map(|checked| &checked.hits).map(|found| found.hit.layer).collect();
    layers.sort_unstable();
    layers.dedup();
    if !layers.is_empty() {
        out.push('\n');
    }
    for layer in layers {
        out.push_str(&prose(&format!("{}: {}", layer.as_str(), layer.description()), 0, options.width));
    }
    if meaning_not_compared(tested) {
        out.push_str(
            "\nMeaning was not compared: the match mode is semantic, and this command matches only text.\n",
        );
    }
    finish(&out, options)
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}

fn hits(count: usize) -> &'static str {
    if count == 1 { "hits" } else { "hit" }
}

/// Where a trait is declared.
fn declaration(checked: &TraitHits) -> String {
    Paint::Faint.on(&format!("({}, {}:{})", checked.declared.as_str(), one_line(&checked.file), checked.line))
}

fn meaning_not_compared(tested: &LockTest) -> bool {
    tested.traits.iter().any(|checked| checked.by_meaning)
}

/// `{assembly, matchMode, meaning_compared, traits: [{trait, declared, file, line, meaning_compared, hits: [{layer, says,
/// line, column, start, end, excerpt}]}], warnings}`; `start` and `end` are byte offsets, `column` counts characters.
/// `meaning_compared` of a trait is null if the trait is matched by text only.
pub(crate) fn json(tested: &LockTest) -> String {
    let hit = |found: &HitPosition| {
        json!({
            "layer": found.hit.layer.as_str(),
            "says": found.hit.layer.description(),
            "line": found.line,
            "column": found.column,
            "start": found.hit.span.start,
            "end": found.hit.span.end,
            "excerpt": excerpt(&tested.text, &found.hit.span),
        })
    };
    let trait_json = |checked: &TraitHits| {
        json!({
            "trait": checked.text,
            "declared": checked.declared.as_str(),
            "file": checked.file,
            "line": checked.line,
            "meaning_compared": if checked.by_meaning { Value::Bool(false) } else { Value::Null },
            "hits": checked.hits.iter().map(hit).collect::<Vec<_>>(),
        })
    };
    let value = json!({
        "assembly": tested.assembly,
        "matchMode": tested.match_mode.as_str(),
        "meaning_compared": if meaning_not_compared(tested) { Value::Bool(false) } else { Value::Null },
        "traits": tested.traits.iter().map(trait_json).collect::<Vec<_>>(),
        "warnings": diagnostics_json(&tested.report),
    });
    format!("{value:#}\n")
}

/// The locked traits of an operator.
pub(crate) fn list(
    operator: &str,
    traits: &[Arc<Trait>],
    format: HumanOrJson,
    options: TextOptions,
) -> String {
    if format == HumanOrJson::Json {
        let trait_json = |locked: &Arc<Trait>| json!({"id": locked.id, "description": locked.description, "words": locked.words, "phrases": locked.phrases});
        let all: Vec<Value> = traits.iter().map(trait_json).collect();
        return format!("{:#}\n", json!({"operator": operator, "locks": all}));
    }
    let row = |locked: &Arc<Trait>| {
        let counts = match (locked.words.len(), locked.phrases.len()) {
            (0, 0) => "its own name".to_owned(),
            (words, phrases) => format!("{words} words, {phrases} phrases"),
        };
        vec![Paint::Strong.on(&one_line(&locked.id)), counts, one_line(&locked.description)]
    };
    let rows = traits.iter().map(row).collect();
    finish(&table(&["trait", "held by", "what it is"], rows, 0, options.width), options)
}
