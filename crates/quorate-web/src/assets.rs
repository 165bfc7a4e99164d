//! The style sheet, the scripts and the icon, under addresses that change with their content.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use quorate::http::sha256_hex;
use quorate_diagnostics::codes;

use crate::failure::Failure;

struct Asset {
    name: &'static str,
    content_type: &'static str,
    text: String,
}

/// The module that checks a report, embedded in it.
pub(crate) const REPORT_CHECK: &str =
    concat!(include_str!("assets/verify.js"), include_str!("assets/check.js"));

/// The same with the code of the pages about proofs.
const VERIFY: &str = concat!(
    include_str!("assets/verify.js"),
    include_str!("assets/check.js"),
    include_str!("assets/drop.js")
);

static ASSETS: LazyLock<[Asset; 5]> = LazyLock::new(|| {
    let style = concat!(include_str!("assets/style.css"), include_str!("assets/server.css"));
    let script =
        |name, source| Asset { name, content_type: "text/javascript; charset=utf-8", text: compact(source) };
    [
        Asset { name: "style.css", content_type: "text/css; charset=utf-8", text: compact_style(style) },
        script("app.js", include_str!("assets/app.js")),
        script("verify.js", VERIFY),
        script("live.js", include_str!("assets/live.js")),
        Asset {
            name: "icon.svg",
            content_type: "image/svg+xml",
            text: include_str!("assets/icon.svg").to_owned(),
        },
    ]
});

/// A source without indentation and lines that are comments. No text in it has several lines.
pub(crate) fn compact(source: &str) -> String {
    let lines = source.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// A style sheet without the blanks that separate nothing.
pub(crate) fn compact_style(source: &str) -> String {
    let compacted = compact(source);
    [(": ", ":"), ("; ", ";"), (", ", ","), (" {", "{"), ("{ ", "{"), (" }", "}")]
        .iter()
        .fold(compacted, |style, (spaced, close)| style.replace(spaced, close))
}

impl Asset {
    fn hash(&self) -> String {
        let mut hash = sha256_hex(self.text.as_bytes());
        hash.truncate(16);
        hash
    }
}

/// The address of an asset.
pub(crate) fn url(name: &str) -> String {
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    asset.map_or_else(String::new, |asset| format!("/assets/{}/{name}", asset.hash()))
}

/// The asset that an address names.
pub(crate) fn get(path: &BTreeMap<String, String>) -> Response {
    let part = |name: &str| path.get(name).map_or("", String::as_str);
    let found = ASSETS.iter().find(|asset| asset.name == part("name") && asset.hash() == part("hash"));
    match found {
        Some(asset) => ([(CONTENT_TYPE, HeaderValue::from_static(asset.content_type))], asset.text.as_str())
            .into_response(),
        None => {
            let help = "load the page again: it names the assets of this version";
            Failure::new(StatusCode::NOT_FOUND, codes::USAGE, "there is no such asset", help).into_response()
        }
    }
}
