//! The card of clients that render apps (MCP Apps, `io.modelcontextprotocol/ui`): a page that shows what a tool decided,
//! and in which a person decides otherwise. Other clients see nothing of it.
//!
//! Only a person overrides a verdict. The tool for it is declared for the card alone, and a host hides such a tool from its
//! model. Since a host may fail to, the tool also needs a key of the run, which is in the `_meta` of a result: hosts pass
//! that to the card and not to the model.

use std::sync::Arc;

use quorate::http::{TokenHash, sha256_hex};
use quorate::runs::Recorded;
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, MetaObject, ResourceContents};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::ServerState;

const EXTENSION: &str = "io.modelcontextprotocol/ui";
const MIME_TYPE: &str = "text/html;profile=mcp-app";
/// The address of the page.
pub(super) const URI: &str = "ui://quorate/decision";
const PAGE: &str = include_str!("card.html");
/// The key of a result's `_meta` that has `{reason, key}` for the card.
const META: &str = "quorate/card";

/// A tool's relation to the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CardUse {
    None,
    /// The card shows its result.
    Shown,
    /// Only the card calls it.
    Calls,
}

impl CardUse {
    /// The `_meta` of the tool.
    pub(super) fn meta(self) -> Option<MetaObject> {
        match self {
            CardUse::None => None,
            CardUse::Shown => Some(meta("ui", json!({"resourceUri": URI}))),
            CardUse::Calls => Some(meta("ui", json!({"visibility": ["app"]}))),
        }
    }
}

fn meta(key: &str, value: Value) -> MetaObject {
    let mut meta = MetaObject::new();
    meta.insert(key.to_owned(), value);
    meta
}

/// Whether the client of a request declares that it renders such pages.
pub(super) fn is_rendered(request: &RequestContext<RoleServer>) -> bool {
    let extensions = request.client_capabilities().and_then(|declared| declared.extensions);
    let settings = extensions.as_ref().and_then(|all| all.get(EXTENSION));
    let types = settings.and_then(|settings| settings.get("mimeTypes")?.as_array());
    types.is_some_and(|types| types.contains(&json!(MIME_TYPE)))
}

/// The page. It loads nothing, so its policy allows no address.
pub(super) fn page() -> ResourceContents {
    let csp = json!({"connectDomains": [], "resourceDomains": [], "frameDomains": [], "baseUriDomains": []});
    let meta = meta("ui", json!({"csp": csp, "prefersBorder": true}));
    ResourceContents::text(PAGE, URI).with_mime_type(MIME_TYPE).with_meta(meta)
}

/// The key that the card of a run overrides its verdict with. It lasts as long as the server.
fn key(state: &ServerState, run: &str) -> String {
    sha256_hex(format!("{}/{run}", state.card_secret).as_bytes())
}

/// Whether this is the key of a run's card.
pub(super) fn is_key(state: &ServerState, run: &str, given: &str) -> bool {
    TokenHash::of(&key(state, run)).matches(given)
}

/// Adds what the card needs besides the result of a run: its reason in plain words, and the key if it has a verdict.
pub(super) async fn annotate(state: &Arc<ServerState>, result: &mut CallToolResult) {
    let content = result.structured_content.as_ref();
    let Some(run) = content.and_then(|content| content.pointer("/result/run")?.as_str()) else { return };
    let (quorate, run) = (state.quorate.clone(), run.to_owned());
    let key = key(state, &run);
    let Ok(recorded) = state.jobs.compute(async move { quorate.show(&run).await }).await else { return };
    let mut card = match &recorded.value {
        Recorded::Review(review) => json!({"reason": review.answer()}),
        Recorded::Decision(decision) => json!({"reason": decision.reason()}),
    };
    card = state.quorate.redact_json(card);
    if matches!(&recorded.value, Recorded::Review(review) if review.verdict.is_some()) {
        card["key"] = json!(key);
    }
    result.meta.get_or_insert_with(MetaObject::new).insert(META.to_owned(), card);
}
