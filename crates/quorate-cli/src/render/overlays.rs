//! The output of `quorate overlays` and `quorate weave`.

use quorate::service::compose;
use quorate::service::diff::unified;
use quorate::service::overlays::OverlayEntry;
use quorate::service::weave::ComposedPrompt;
use quorate_diagnostics::render::TextOptions;
use quorate_kernel::clock::rfc3339;
use quorate_playbook::log::NEVER_GATED;
use quorate_playbook::weave::Placement;
use quorate_protocol::Json;
use quorate_protocol::overlay::{Eviction, Overlay};
use serde_json::json;

use super::layout::{Paint, finish, one_line, truncate};
use super::layout::{columns_of, prose};
use crate::arguments::HumanOrJson;

/// The least width of a text in a list, even on a narrow terminal.
const TEXT: usize = 60;
/// The width of a priority.
const PRIORITY: usize = 3;

fn object(entry: &OverlayEntry) -> Json {
    let mut json = json!(entry.overlay);
    json["holds"] = json!(entry.active);
    json["added"] = json!(rfc3339(entry.overlay.added_ms));
    json["expires"] = json!(rfc3339(entry.overlay.expires_ms));
    json
}

fn operator(overlay: &Overlay) -> String {
    if overlay.operator.is_empty() { "(no operator)".to_owned() } else { one_line(&overlay.operator) }
}

pub(crate) fn list(all: &[OverlayEntry], now_ms: i64, format: HumanOrJson, options: TextOptions) -> String {
    if format == HumanOrJson::Json {
        return format!("{:#}\n", json!({"overlays": all.iter().map(object).collect::<Vec<_>>()}));
    }
    if all.is_empty() {
        return "no overlays\n".to_owned();
    }
    let row = |entry: &OverlayEntry| {
        let overlay = &entry.overlay;
        let holds = if entry.active { time_left(overlay, now_ms) } else { "expired".to_owned() };
        let (id, priority) = (one_line(&overlay.overlay), overlay.priority.to_string());
        [id, priority, holds, one_line(&overlay.assembly), operator(overlay), one_line(&overlay.text)]
    };
    let rows: Vec<[String; 6]> = all.iter().map(row).collect();
    finish(&rows.iter().map(|row| aligned(row, &widths(&rows), options.width)).collect::<String>(), options)
}

/// The width of each column; the last one takes the rest.
fn widths(rows: &[[String; 6]]) -> [usize; 5] {
    let least = [0, PRIORITY, 0, 0, 0];
    [0, 1, 2, 3, 4]
        .map(|at| rows.iter().map(|row| columns_of(&row[at])).max().unwrap_or_default().max(least[at]))
}

/// A row on one line, so that programs can read the list by lines.
fn aligned(row: &[String; 6], widths: &[usize; 5], width: usize) -> String {
    let mut out = String::new();
    for (at, (cell, wide)) in row.iter().zip(widths).enumerate() {
        let gap = " ".repeat(wide.saturating_sub(columns_of(cell)));
        let cell = match at {
            0 => Paint::Strong.on(cell),
            2 if cell == "expired" => Paint::Absent.on(cell),
            _ => cell.clone(),
        };
        // Numbers are aligned to the right.
        out.push_str(&if at == 1 { format!("{gap}{cell}  ") } else { format!("{cell}{gap}  ") });
    }
    let room = width.saturating_sub(widths.iter().sum::<usize>() + 2 * widths.len());
    format!("{out}{}\n", truncate(&row[5], room.max(TEXT)))
}

/// The remaining time of an overlay.
fn time_left(overlay: &Overlay, now_ms: i64) -> String {
    // Rounded down to minutes, so that fourteen days stay fourteen days a second later.
    let minutes = (overlay.expires_ms - now_ms).max(0) / 60_000;
    let hours = (minutes + 30) / 60;
    if hours >= 48 { format!("{} d", (hours + 12) / 24) } else { format!("{hours} h") }
}

pub(crate) fn show(entry: &OverlayEntry, now_ms: i64, format: HumanOrJson, options: TextOptions) -> String {
    if format == HumanOrJson::Json {
        return format!("{:#}\n", object(entry));
    }
    let overlay = &entry.overlay;
    let holds = if entry.active { time_left(overlay, now_ms) } else { "over".to_owned() };
    let text = prose(&overlay.text, 2, options.width);
    let mut text = format!("{}\n\n{text}\n", Paint::Strong.on(&one_line(&overlay.overlay)));
    for (name, value) in [
        ("assembly", one_line(&overlay.assembly)),
        ("operator", operator(overlay)),
        ("run", one_line(&overlay.run)),
        ("member", one_line(&overlay.member)),
        ("rule", one_line(&overlay.rule)),
        ("severity", overlay.severity.to_string()),
        ("priority", overlay.priority.to_string()),
        ("added", rfc3339(overlay.added_ms)),
        ("expires", format!("{} ({holds})", rfc3339(overlay.expires_ms))),
    ] {
        text.push_str(&format!("  {} {value}\n", Paint::Faint.on(&format!("{name:9}"))));
    }
    finish(&text, options)
}

/// The result of an early expiry.
pub(crate) fn expired(overlay: &Overlay, format: HumanOrJson) -> String {
    match format {
        HumanOrJson::Json => format!("{:#}\n", json!({"expired": overlay.overlay})),
        HumanOrJson::Human => format!("{} has expired\n", overlay.overlay),
    }
}

pub(crate) fn swept(evicted: &[Eviction], format: HumanOrJson) -> String {
    match format {
        HumanOrJson::Json => format!("{:#}\n", json!({"evicted": evicted})),
        HumanOrJson::Human if evicted.is_empty() => "nothing to sweep\n".to_owned(),
        HumanOrJson::Human => {
            let ids: Vec<&str> = evicted.iter().map(|eviction| eviction.overlay.as_str()).collect();
            format!("swept: {}\n", ids.join(", "))
        }
    }
}

pub(crate) fn woven_prompt(woven: &ComposedPrompt) -> String {
    let mut text = woven.woven.prompt.clone();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// The woven playbooks and overlays, and the skipped ones.
pub(crate) fn weave_summary(woven: &ComposedPrompt) -> String {
    let mut text = String::new();
    for piece in &woven.woven.woven {
        let origin = woven.overlays.iter().find(|overlay| overlay.overlay == piece.id);
        let origin = origin.map_or_else(String::new, |overlay| {
            format!(" (run {}, {})", overlay.run, one_line(&overlay.member))
        });
        let origin = match &piece.placement {
            Placement::Appended => origin,
            Placement::Block(block) => format!("{origin} in place of `{}`", one_line(block)),
        };
        let gating =
            if woven.never_gated.contains(&piece.id) { format!(", {NEVER_GATED}") } else { String::new() };
        text.push_str(&format!(
            "woven:   {} at priority {:>3}{origin}{gating}\n",
            one_line(&piece.id),
            piece.priority
        ));
    }
    for piece in &woven.woven.skipped {
        text.push_str(&format!("skipped: {}: {}\n", one_line(&piece.id), piece.reason));
    }
    if let Some(slug) = &woven.trying {
        text.push_str(&format!("trying:  {}, in this prompt only\n", one_line(slug)));
    }
    for (slug, status) in woven.resting.iter().filter(|(slug, _)| woven.trying.as_ref() != Some(slug)) {
        text.push_str(&format!("skipped: {}: it is {status}\n", one_line(slug)));
    }
    if woven.woven.woven.is_empty() && woven.trying.is_none() {
        text.push_str("nothing is woven in\n");
    }
    text
}

/// The woven and the skipped playbooks and overlays, and the resulting prompt's size and hash.
pub(crate) fn weave_explanation(woven: &ComposedPrompt) -> String {
    format!(
        "{}prompt:  {} characters, about {} tokens, sha256 {}\n",
        weave_summary(woven),
        woven.woven.prompt.chars().count(),
        woven.tokens(),
        woven.sha256
    )
}

/// The changes by weaving as a unified diff; empty without changes.
pub(crate) fn weave_diff(woven: &ComposedPrompt) -> String {
    unified(&woven.reference, Some(woven.base.as_bytes()), Some(woven.woven.prompt.as_bytes()))
}

pub(crate) fn weave_json(woven: &ComposedPrompt) -> String {
    let used = woven.woven.woven.iter().map(|piece| {
        let block = match &piece.placement {
            Placement::Appended => None,
            Placement::Block(block) => Some(block),
        };
        let key = if woven.overlays.iter().any(|overlay| overlay.overlay == piece.id) {
            "overlay"
        } else {
            "playbook"
        };
        let mut json = json!({key: piece.id, "priority": piece.priority, "block": block});
        if key == "playbook" {
            json["never_gated"] = json!(woven.never_gated.contains(&piece.id));
        }
        json
    });
    let skipped = woven.woven.skipped.iter().map(|piece| (piece.id.as_str(), piece.reason.to_string()));
    let resting = woven
        .resting
        .iter()
        .filter(|(slug, _)| woven.trying.as_ref() != Some(slug))
        .map(|(slug, status)| (slug.as_str(), format!("it is {status}")));
    let skipped = skipped.chain(resting).map(|(id, reason)| json!({"id": id, "why": reason}));
    let json = json!({
        if woven.is_operator { "operator" } else { "persona" }: woven.reference,
        "tokens": woven.tokens(),
        "prompt": woven.woven.prompt,
        "sha256": woven.sha256,
        "woven": used.collect::<Vec<_>>(),
        "skipped": skipped.collect::<Vec<_>>(),
        "trying": woven.trying,
        "shadows": compose::shadows(&woven.shadows),
    });
    format!("{json:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(id: &str, priority: u8, operator: &str, text: &str, holds: bool) -> OverlayEntry {
        let overlay = Overlay {
            overlay: id.to_owned(),
            assembly: "mentors".to_owned(),
            operator: operator.to_owned(),
            run: "r7k2m9q4xa1bc".to_owned(),
            member: "critic".to_owned(),
            rule: "gravest".to_owned(),
            text: text.to_owned(),
            severity: 6,
            priority,
            added_ms: 1_772_600_700_007,
            expires_ms: 1_772_600_700_007 + 14 * 86_400_000,
        };
        OverlayEntry { overlay, active: holds }
    }

    #[test]
    fn a_line_for_each_overlay() {
        let all = [
            listed("o7k2m9q4xa1bc", 100, "support", "Name one\nargument \u{1b}[31magainst.", true),
            listed("ozzzzzz4xa1bc", 49, "", &"word ".repeat(40), false),
        ];
        insta::assert_snapshot!(list(&all, 1_772_600_700_007, HumanOrJson::Human, TextOptions::default()), @r#"
    o7k2m9q4xa1bc  100  14 d     mentors  support        Name one argument [U+001B][31magainst.
    ozzzzzz4xa1bc   49  expired  mentors  (no operator)  word word word word word word word word word word word word…
    "#);
        insta::assert_snapshot!(show(&all[0], 1_772_600_700_007, HumanOrJson::Human, TextOptions::default()), @r#"
    o7k2m9q4xa1bc

      Name one argument [U+001B][31magainst.

      assembly  mentors
      operator  support
      run       r7k2m9q4xa1bc
      member    critic
      rule      gravest
      severity  6
      priority  100
      added     2026-03-04T05:05:00.007Z
      expires   2026-03-18T05:05:00.007Z (14 d)
    "#);
    }
}
