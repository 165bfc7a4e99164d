//! What `quorate weave` prints.

use serde_json::json;

use quorate_playbook::weave::Placement;

use super::paint::one_line;
use quorate::service::compose;
use quorate::service::diff::unified;
use quorate::service::weave::Prompt;

/// The prompt, and nothing else.
pub(crate) fn prompt(woven: &Prompt) -> String {
    let mut text = woven.woven.prompt.clone();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// What was woven, and what was not.
pub(crate) fn summary(woven: &Prompt) -> String {
    let mut text = String::new();
    for one in &woven.woven.woven {
        let of = woven.overlays.iter().find(|overlay| overlay.overlay == one.id);
        let of = of.map_or_else(String::new, |one| format!(" (run {}, {})", one.run, one_line(&one.member)));
        let of = match &one.placement {
            Placement::Appended => of,
            Placement::Block(block) => format!("{of} in place of `{}`", one_line(block)),
        };
        text.push_str(&format!("woven:   {} at priority {:>3}{of}\n", one_line(&one.id), one.priority));
    }
    for one in &woven.woven.skipped {
        text.push_str(&format!("skipped: {}: {}\n", one_line(&one.id), one.reason));
    }
    if let Some(slug) = &woven.trying {
        text.push_str(&format!("trying:  {}, which nobody else is told\n", one_line(slug)));
    }
    for (slug, status) in woven.resting.iter().filter(|(slug, _)| woven.trying.as_ref() != Some(slug)) {
        text.push_str(&format!("skipped: {}: it is {status}\n", one_line(slug)));
    }
    if woven.woven.woven.is_empty() && woven.trying.is_none() {
        text.push_str("nothing is woven in\n");
    }
    text
}

/// What was woven and what was not, and what came of it.
pub(crate) fn explanation(woven: &Prompt) -> String {
    format!(
        "{}prompt:  {} characters, about {} tokens, sha256 {}\n",
        summary(woven),
        woven.woven.prompt.chars().count(),
        woven.tokens(),
        woven.sha256
    )
}

/// What weaving has changed, as a unified diff; nothing where that is nothing.
pub(crate) fn diff(woven: &Prompt) -> String {
    unified(&woven.reference, Some(woven.base.as_bytes()), Some(woven.woven.prompt.as_bytes()))
}

/// One JSON object.
pub(crate) fn json(woven: &Prompt) -> String {
    let used = woven.woven.woven.iter().map(|one| {
        let block = match &one.placement {
            Placement::Appended => None,
            Placement::Block(block) => Some(block),
        };
        let key = if woven.overlays.iter().any(|overlay| overlay.overlay == one.id) {
            "overlay"
        } else {
            "playbook"
        };
        json!({key: one.id, "priority": one.priority, "block": block})
    });
    let skipped = woven.woven.skipped.iter().map(|one| (one.id.as_str(), one.reason.to_string()));
    let resting = woven
        .resting
        .iter()
        .filter(|(slug, _)| woven.trying.as_ref() != Some(slug))
        .map(|(slug, status)| (slug.as_str(), format!("it is {status}")));
    let skipped = skipped.chain(resting).map(|(id, why)| json!({"id": id, "why": why}));
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
