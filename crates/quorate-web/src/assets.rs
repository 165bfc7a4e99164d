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

/// The module that checks a report and draws its page, embedded in it.
pub(crate) const REPORT: &str = concat!(
    include_str!("assets/verify.js"),
    include_str!("assets/check.js"),
    include_str!("assets/draw.js"),
    include_str!("assets/report.js")
);

/// The module of the pages about proofs.
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

/// A source without indentation, lines that are comments, and line ends that separate nothing. No text in it has several lines.
pub(crate) fn compact(source: &str) -> String {
    let mut compacted = String::new();
    for line in source.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")) {
        if !compacted.is_empty() && !compacted.ends_with([',', ';', '(', '[', '{']) {
            compacted.push('\n');
        }
        compacted.push_str(line);
    }
    compacted
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The most bytes of style and scripts of one page.
    const MOST: usize = 40_000;

    fn size(name: &str) -> usize {
        ASSETS.iter().find(|asset| asset.name == name).map_or(usize::MAX, |asset| asset.text.len())
    }

    #[test]
    fn no_page_has_more_than_40_kb_of_style_and_scripts() {
        for scripts in [&["live.js"][..], &["verify.js"]] {
            let all = ["style.css", "app.js"].iter().chain(scripts).map(|name| size(name));
            assert!(all.clone().sum::<usize>() <= MOST, "{scripts:?}: {:?}", all.collect::<Vec<_>>());
        }
    }

    /// The colours of a block of tokens, as red, green and blue.
    fn colours(block: &str) -> BTreeMap<&str, [f64; 3]> {
        fn token(declaration: &str) -> Option<(&str, [f64; 3])> {
            let (name, value) = declaration.trim().strip_prefix("--")?.split_once(": #")?;
            let digit = |at: usize| u32::from_str_radix(&value[at..=at], 16).ok();
            let channel = |at: usize| match value.len() {
                3 => digit(at).map(|digit| f64::from(digit * 17)),
                _ => Some(f64::from(digit(at * 2)? * 16 + digit(at * 2 + 1)?)),
            };
            Some((name, [channel(0)?, channel(1)?, channel(2)?]))
        }
        block.split(';').filter_map(token).collect()
    }

    /// The ratio of WCAG 2.
    fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
        let linear = |channel: f64| match channel / 255.0 {
            low if low <= 0.040_45 => low / 12.92,
            high => ((high + 0.055) / 1.055).powf(2.4),
        };
        let luminance = |[red, green, blue]: [f64; 3]| {
            0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
        };
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn texts_have_the_contrast_of_aa_in_both_themes() {
        let style = include_str!("assets/style.css");
        let blocks: Vec<&str> =
            style.split(":root {").skip(1).map(|block| block.split('}').next().unwrap()).collect();
        let [light, dark] = blocks[..] else { panic!("a block for each theme: {blocks:?}") };
        assert!((contrast([0.0; 3], [255.0; 3]) - 21.0).abs() < 1e-9);
        for (theme, block) in [("light", light), ("dark", dark)] {
            let all = colours(block);
            let ratio = |one: &str, other: &str| contrast(all[one], all[other]);
            for ground in ["bg", "soft"] {
                for text in ["text", "mute", "accent", "good", "fair", "bad", "none"] {
                    assert!(
                        ratio(text, ground) >= 4.5,
                        "{theme}: {text} on {ground}: {}",
                        ratio(text, ground)
                    );
                }
                assert!(ratio("edge", ground) >= 3.0, "{theme}: the edge of a field on {ground}");
            }
            for marked in ["mark", "mark-bad"] {
                assert!(ratio("text", marked) >= 4.5, "{theme}: text on {marked}");
            }
            // The hottest severity of a tree.
            let heat: [f64; 3] = std::array::from_fn(|at| 0.46 * all["bad"][at] + 0.54 * all["soft"][at]);
            assert!(contrast(all["text"], heat) >= 4.5, "{theme}: text on heat");
        }
    }
}
