//! The output of `quorate weave`.

use serde_json::json;

use quorate_playbook::index::NEVER_GATED;
use quorate_playbook::weave::Placement;

use super::paint::one_line;
use quorate::service::compose;
use quorate::service::diff::unified;
use quorate::service::weave::Prompt;

pub(crate) fn prompt(woven: &Prompt) -> String {
    let mut text = woven.woven.prompt.clone();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// The woven playbooks and overlays, and the skipped ones.
pub(crate) fn summary(woven: &Prompt) -> String {
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
pub(crate) fn explanation(woven: &Prompt) -> String {
    format!(
        "{}prompt:  {} characters, about {} tokens, sha256 {}\n",
        summary(woven),
        woven.woven.prompt.chars().count(),
        woven.tokens(),
        woven.sha256
    )
}

/// The changes by weaving as a unified diff; empty without changes.
pub(crate) fn diff(woven: &Prompt) -> String {
    unified(&woven.reference, Some(woven.base.as_bytes()), Some(woven.woven.prompt.as_bytes()))
}

pub(crate) fn json(woven: &Prompt) -> String {
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
