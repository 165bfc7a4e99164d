//! The style sheet, the scripts and the icon, under addresses that change with their content.

use std::collections::BTreeMap;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use quorate::http::sha256_hex;
use quorate_diagnostics::codes;

use crate::failure::Failure;

struct Asset {
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
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

const ASSETS: [Asset; 5] = [
    Asset {
        name: "style.css",
        content_type: "text/css; charset=utf-8",
        bytes: concat!(include_str!("assets/style.css"), include_str!("assets/server.css")).as_bytes(),
    },
    Asset {
        name: "app.js",
        content_type: "text/javascript; charset=utf-8",
        bytes: include_bytes!("assets/app.js"),
    },
    Asset { name: "verify.js", content_type: "text/javascript; charset=utf-8", bytes: VERIFY.as_bytes() },
    Asset {
        name: "live.js",
        content_type: "text/javascript; charset=utf-8",
        bytes: include_bytes!("assets/live.js"),
    },
    Asset { name: "icon.svg", content_type: "image/svg+xml", bytes: include_bytes!("assets/icon.svg") },
];

impl Asset {
    fn hash(&self) -> String {
        let mut hash = sha256_hex(self.bytes);
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
        Some(asset) => {
            ([(CONTENT_TYPE, HeaderValue::from_static(asset.content_type))], asset.bytes).into_response()
        }
        None => {
            let help = "load the page again: it names the assets of this version";
            Failure::new(StatusCode::NOT_FOUND, codes::USAGE, "there is no such asset", help).into_response()
        }
    }
}
