//! What `quorate weave` prints.

use serde_json::json;

use super::paint::line;
use crate::service::weave::Prompt;

/// The prompt, and nothing else.
pub fn prompt(woven: &Prompt) -> String {
    let mut text = woven.woven.prompt.clone();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// What was woven, and what was not.
pub fn told(woven: &Prompt) -> String {
    let mut text = String::new();
    for one in &woven.woven.woven {
        let of = woven.overlays.iter().find(|overlay| overlay.overlay == one.id);
        let of = of.map_or_else(String::new, |one| format!(" (run {}, {})", one.run, line(&one.member)));
        text.push_str(&format!("woven:   {} at priority {:>3}{of}\n", line(&one.id), one.priority));
    }
    for one in &woven.woven.skipped {
        text.push_str(&format!("skipped: {}: {}\n", line(&one.id), one.why));
    }
    if text.is_empty() {
        text.push_str("nothing is woven in\n");
    }
    text
}

/// One JSON object.
pub fn json(woven: &Prompt) -> String {
    let used = woven.woven.woven.iter().map(|one| json!({"overlay": one.id, "priority": one.priority}));
    let skipped =
        woven.woven.skipped.iter().map(|one| json!({"overlay": one.id, "why": one.why.to_string()}));
    let json = json!({
        "persona": woven.persona,
        "prompt": woven.woven.prompt,
        "sha256": woven.sha256,
        "woven": used.collect::<Vec<_>>(),
        "skipped": skipped.collect::<Vec<_>>(),
    });
    format!("{json:#}\n")
}
