//! What `quorate overlays` prints.

use quorate_diagnostics::render::Look;
use quorate_kernel::clock::rfc3339;
use quorate_protocol::Json;
use quorate_protocol::overlay::{Evicted, Overlay};
use serde_json::json;

use super::paint::{Paint, clean, finish, line};
use super::wording::cut;
use crate::cli::arguments::Tabular;
use crate::service::overlays::Listed;

/// How much of a text stands in a list.
const TEXT: usize = 60;

fn object(listed: &Listed) -> Json {
    let mut json = json!(listed.overlay);
    json["holds"] = json!(listed.holds);
    json["added"] = json!(rfc3339(listed.overlay.added_ms));
    json["expires"] = json!(rfc3339(listed.overlay.expires_ms));
    json
}

fn operator(overlay: &Overlay) -> String {
    if overlay.operator.is_empty() { "(nobody named)".to_owned() } else { line(&overlay.operator) }
}

/// All of them.
pub(in crate::cli) fn list(all: &[Listed], now_ms: i64, format: Tabular, look: Look) -> String {
    if format == Tabular::Json {
        return format!("{:#}\n", json!({"overlays": all.iter().map(object).collect::<Vec<_>>()}));
    }
    if all.is_empty() {
        return "no overlays\n".to_owned();
    }
    let mut text = String::new();
    for one in all {
        let overlay = &one.overlay;
        let holds = if one.holds { left(overlay, now_ms) } else { Paint::Absent.on("expired") };
        text.push_str(&format!(
            "{}  {:>3}  {holds}  {}  {}  {}\n",
            Paint::Strong.on(&overlay.overlay),
            overlay.priority,
            line(&overlay.assembly),
            operator(overlay),
            cut(&line(&overlay.text), TEXT)
        ));
    }
    finish(&text, look)
}

/// How long an overlay still holds.
fn left(overlay: &Overlay, now_ms: i64) -> String {
    let hours = (overlay.expires_ms - now_ms).max(0) / 3_600_000;
    if hours >= 48 { format!("{:>3} d", hours / 24) } else { format!("{hours:>3} h") }
}

/// One of them.
pub(in crate::cli) fn show(one: &Listed, now_ms: i64, format: Tabular, look: Look) -> String {
    if format == Tabular::Json {
        return format!("{:#}\n", object(one));
    }
    let overlay = &one.overlay;
    let holds = if one.holds { left(overlay, now_ms).trim().to_owned() } else { "over".to_owned() };
    let mut text = format!("{}\n\n{}\n\n", Paint::Strong.on(&overlay.overlay), clean(overlay.text.trim()));
    for (name, value) in [
        ("assembly", line(&overlay.assembly)),
        ("operator", operator(overlay)),
        ("run", overlay.run.clone()),
        ("member", line(&overlay.member)),
        ("rule", line(&overlay.rule)),
        ("severity", overlay.severity.to_string()),
        ("priority", overlay.priority.to_string()),
        ("added", rfc3339(overlay.added_ms)),
        ("expires", format!("{} ({holds})", rfc3339(overlay.expires_ms))),
    ] {
        text.push_str(&format!("  {} {value}\n", Paint::Faint.on(&format!("{name:9}"))));
    }
    finish(&text, look)
}

/// One was taken away.
pub(in crate::cli) fn expired(overlay: &Overlay, format: Tabular) -> String {
    match format {
        Tabular::Json => format!("{:#}\n", json!({"expired": overlay.overlay})),
        Tabular::Human => format!("{} is taken away\n", overlay.overlay),
    }
}

/// What went.
pub(in crate::cli) fn swept(evicted: &[Evicted], format: Tabular) -> String {
    match format {
        Tabular::Json => format!("{:#}\n", json!({"evicted": evicted})),
        Tabular::Human if evicted.is_empty() => "nothing to sweep\n".to_owned(),
        Tabular::Human => {
            let gone: Vec<&str> = evicted.iter().map(|one| one.overlay.as_str()).collect();
            format!("swept: {}\n", gone.join(", "))
        }
    }
}
