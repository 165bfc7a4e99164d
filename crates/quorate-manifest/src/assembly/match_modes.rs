//! The match modes that the documents of a chain declare.

use std::sync::Arc;

use super::mode::MatchMode;
use crate::document::Document;
use crate::tree::Node;

/// For each document, root first, the match mode of the traits that it declares (M9).
pub(crate) fn declared_match_modes(documents: &[Arc<Document>]) -> Vec<MatchMode> {
    let mut strictest = MatchMode::default();
    let declared = |document: &Arc<Document>| {
        document.root.key("matchMode").and_then(Node::as_str).and_then(MatchMode::parse)
    };
    documents
        .iter()
        .map(|document| {
            strictest = declared(document).map_or(strictest, |mode| mode.max(strictest));
            strictest
        })
        .collect()
}
