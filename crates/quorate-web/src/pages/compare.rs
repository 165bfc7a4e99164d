//! `/compare`: two runs on one artifact: findings kept, new and gone, and who changed position.

use std::sync::Arc;

use askama::Template;
use quorate::runs::CompareRequest;
use serde::Deserialize;

use super::{Asked, Frame};
use crate::Server;
use crate::api::runs::load_comparison;
use crate::failure::Failure;

/// The fields of the form; empty where nothing is filled in.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Query {
    a: String,
    b: String,
}

#[derive(Template)]
#[template(path = "compare.html")]
pub(super) struct ComparePage {
    frame: Frame,
    asked: Query,
    /// The comparison as HTML, if one was asked for.
    compared: Option<String>,
}

/// The page.
pub(super) async fn page(server: Arc<Server>, asked: Asked) -> Result<ComparePage, Failure> {
    let asked: Query = asked.query()?;
    if asked.b.is_empty() {
        let frame = Frame::new(&server, "Compare", "runs", "quorate compare".to_owned());
        return Ok(ComparePage { frame, asked, compared: None });
    }
    let request = CompareRequest { a: Some(asked.a), b: asked.b };
    let compared = load_comparison(&server, request).await?;
    let command = format!("quorate compare {} {}", compared.a.run, compared.b.run);
    let json = format!("/api/v1/compare?a={}&b={}", compared.a.run, compared.b.run);
    let frame =
        Frame::new(&server, format!("Compare {}", compared.artifact), "runs", command).with_json(json);
    let html = compared.doc().html();
    Ok(ComparePage { frame, asked: Query { a: compared.a.run, b: compared.b.run }, compared: Some(html) })
}
