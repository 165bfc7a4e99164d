//! What locked traits see in a text: for people, and as JSON.

use std::fmt::Write as _;

use quorate_diagnostics::render::{TextOptions, json as diagnostics};
use quorate_playbook::lock::Trait;
use quorate_protocol::locks::{Layer, excerpt, excerpt_parts};
use serde_json::{Value, json};

use super::layout::{prose, table};
use super::paint::{Paint, finish, one_line, sanitize};
use crate::arguments::HumanOrJson;
use quorate::service::locks::{HitPosition, LockTest, TraitHits};

/// How many places of one trait are shown.
const SHOWN: usize = 20;

/// The hits for people: by trait, then those that do not hit.
pub(crate) fn human(tested: &LockTest, look: TextOptions) -> String {
    let (hit, silent): (Vec<&TraitHits>, Vec<&TraitHits>) =
        tested.traits.iter().partition(|one| !one.hits.is_empty());
    let mut out = match (tested.traits.len(), hit.len()) {
        (0, _) => format!("{} has no locked traits.\n", one_line(&tested.assembly)),
        (1, 0) => "The one locked trait does not hit.\n".to_owned(),
        (all, 0) => format!("None of {all} locked traits hits.\n"),
        (all, some) => format!("{some} of {all} locked {} {}.\n", plural(all, "trait"), hits(some)),
    };
    for one in &hit {
        let _ = writeln!(out, "\n{}  {}", Paint::Strong.on(&one_line(&one.text)), declaration(one));
        for seen in one.hits.iter().take(SHOWN) {
            let [before, within, after] = excerpt_parts(&tested.text, &seen.hit.span);
            let _ = writeln!(
                out,
                "  {}:{}:{}  {}",
                one_line(tested.file.as_deref().unwrap_or("text")),
                seen.line,
                seen.column,
                seen.hit.layer.as_str()
            );
            let marked = Paint::Bad.on(&format!("«{}»", sanitize(&within)));
            let _ =
                writeln!(out, "    {}{marked}{}", sanitize(before.trim_start()), sanitize(after.trim_end()));
        }
        if one.hits.len() > SHOWN {
            let _ = writeln!(out, "  and at {} more places", one.hits.len() - SHOWN);
        }
    }
    if !hit.is_empty() && !silent.is_empty() {
        out.push_str("\nNot hit:\n");
    }
    for one in &silent {
        let _ = writeln!(out, "  {}  {}", one_line(&one.text), declaration(one));
    }
    let mut layers: Vec<Layer> = hit.iter().flat_map(|one| &one.hits).map(|seen| seen.hit.layer).collect();
    layers.sort_unstable();
    layers.dedup();
    if !layers.is_empty() {
        out.push('\n');
    }
    for layer in layers {
        out.push_str(&prose(&format!("{}: {}", layer.as_str(), layer.description()), 0, look.width));
    }
    if meaning_not_compared(tested) {
        out.push_str(
            "\nMeaning was not compared: the match mode is semantic, and there is no embedder here.\n",
        );
    }
    finish(&out, look)
}

fn plural(count: usize, what: &str) -> String {
    if count == 1 { what.to_owned() } else { format!("{what}s") }
}

fn hits(count: usize) -> &'static str {
    if count == 1 { "hits" } else { "hit" }
}

/// Where a trait comes from.
fn declaration(one: &TraitHits) -> String {
    Paint::Faint.on(&format!("({}, {}:{})", one.declared.as_str(), one_line(&one.file), one.line))
}

fn meaning_not_compared(tested: &LockTest) -> bool {
    tested.traits.iter().any(|one| one.by_meaning)
}

/// `{assembly, matchMode, meaning_compared, traits: [{trait, declared, file, line, meaning_compared, hits: [{layer, says,
/// line, column, start, end, excerpt}]}], warnings}`; `start` and `end` are bytes of the text, `column` counts characters.
/// Of a trait whose meaning nobody asks for, `meaning_compared` is null.
pub(crate) fn json(tested: &LockTest) -> String {
    let hit = |seen: &HitPosition| {
        json!({
            "layer": seen.hit.layer.as_str(),
            "says": seen.hit.layer.description(),
            "line": seen.line,
            "column": seen.column,
            "start": seen.hit.span.start,
            "end": seen.hit.span.end,
            "excerpt": excerpt(&tested.text, &seen.hit.span),
        })
    };
    let locked = |one: &TraitHits| {
        json!({
            "trait": one.text,
            "declared": one.declared.as_str(),
            "file": one.file,
            "line": one.line,
            "meaning_compared": if one.by_meaning { Value::Bool(false) } else { Value::Null },
            "hits": one.hits.iter().map(hit).collect::<Vec<_>>(),
        })
    };
    let value = json!({
        "assembly": tested.assembly,
        "matchMode": tested.match_mode.as_str(),
        "meaning_compared": if meaning_not_compared(tested) { Value::Bool(false) } else { Value::Null },
        "traits": tested.traits.iter().map(locked).collect::<Vec<_>>(),
        "warnings": diagnostics::diagnostics(&tested.report),
    });
    format!("{value:#}\n")
}

/// The traits that are locked in an operator.
pub(crate) fn list(operator: &str, traits: &[Trait], format: HumanOrJson, look: TextOptions) -> String {
    if format == HumanOrJson::Json {
        let one = |one: &Trait| json!({"id": one.id, "description": one.description, "words": one.words, "phrases": one.phrases});
        let all: Vec<Value> = traits.iter().map(one).collect();
        return format!("{:#}\n", json!({"operator": operator, "locks": all}));
    }
    let row = |one: &Trait| {
        let held = match (one.words.len(), one.phrases.len()) {
            (0, 0) => "its own name".to_owned(),
            (words, phrases) => format!("{words} words, {phrases} phrases"),
        };
        vec![Paint::Strong.on(&one_line(&one.id)), held, one_line(&one.description)]
    };
    let rows = traits.iter().map(row).collect();
    finish(&table(&["trait", "held by", "what it is"], rows, 0, look.width), look)
}
