//! `assembly_member_id_collision`: two members of one document have the same id. For two rules of one document with the
//! same id the code is `assembly_synthesis_rule_invalid`.

use std::collections::BTreeMap;
use std::sync::Arc;

use quorate_diagnostics::codes::RefusalCode;
use quorate_diagnostics::{Body, Report, codes};

use crate::document::Document;
use crate::tree::Node;

/// Checks each document by itself: across documents, the same id means the same member.
pub(crate) fn check(documents: &[Arc<Document>]) -> Report {
    let mut report = Report::new();
    for document in documents {
        report.add_source(Arc::clone(&document.shown), Arc::clone(&document.text));
        let members = document.root.key("members").map_or(&[][..], Node::items);
        refuse_duplicates(document, members, "members", codes::ASSEMBLY_MEMBER_ID_COLLISION, &mut report);
        let rules = document.root.at_path(&["synthesis", "rules"]).map_or(&[][..], Node::items);
        refuse_duplicates(
            document,
            rules,
            "synthesis.rules",
            codes::ASSEMBLY_SYNTHESIS_RULE_INVALID,
            &mut report,
        );
    }
    report
}

fn refuse_duplicates(
    document: &Document,
    items: &[Node],
    path: &str,
    code: RefusalCode,
    report: &mut Report,
) {
    let mut seen = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        let Some(id) = item.key("id") else { continue };
        let Some(text) = id.as_str() else { continue };
        let place = document.place(id.span.clone(), format!("{path}[{at}].id"));
        if let Some(first) = seen.get(text) {
            let what = if path == "members" { "members" } else { "rules" };
            let body = Body::new(format!("two {what} have the id `{text}`")).at(place);
            let body = body.related(Clone::clone(first), "first here");
            report.refuse(
                code,
                body.help(
                    "give one of them another id; only a view may repeat an id, to adapt its parent's entry",
                ),
            );
        } else {
            seen.insert(text, place);
        }
    }
}
