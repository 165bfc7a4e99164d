//! Settings that no descendant may relax (AIP-24, "One-way switches"; M7 to M9): each document is checked against the
//! strictest values of its ancestors. A missing value is the default.

use std::collections::HashSet;
use std::sync::Arc;

use quorate_diagnostics::codes::RefusalCode;
use quorate_diagnostics::{Body, Place, Report, codes};

use super::{MatchMode, Mode};
use crate::document::Document;
use crate::tree::{Kind, Node};

/// The strictest values of the documents checked so far, each with its place.
#[derive(Debug, Default)]
pub(super) struct InheritedMinimums {
    /// Whether the root has been checked.
    root_seen: bool,
    mode: Option<(Mode, Place)>,
    consultations: AuditSwitch,
    overlays: AuditSwitch,
    signing_required: Option<Place>,
    match_mode: (MatchMode, Option<Place>),
    traits: Vec<(String, Place)>,
}

/// An `enabled` that descendants cannot switch off.
#[derive(Debug)]
struct AuditSwitch {
    on: bool,
    set_at: Option<Place>,
}

impl Default for AuditSwitch {
    fn default() -> Self {
        AuditSwitch { on: true, set_at: None }
    }
}

/// Checks each document of a chain, root first, against its ancestors.
pub(super) fn check_minimums(documents: &[Arc<Document>]) -> Report {
    let mut report = Report::new();
    let mut minimums = InheritedMinimums::default();
    for document in documents {
        report.add_source(Arc::clone(&document.shown), Arc::clone(&document.text));
        minimums.check_document(document, &mut report);
        minimums.root_seen = true;
    }
    report
}

/// For each document, root first, the match mode of the traits that it declares (M9).
pub(crate) fn declared_match_modes(documents: &[Arc<Document>]) -> Vec<MatchMode> {
    let mut strictest = MatchMode::default();
    let declared = |document: &Arc<Document>| document.root.text_of("matchMode").and_then(MatchMode::parse);
    documents
        .iter()
        .map(|document| {
            strictest = declared(document).map_or(strictest, |mode| mode.max(strictest));
            strictest
        })
        .collect()
}

impl InheritedMinimums {
    fn check_document(&mut self, document: &Document, report: &mut Report) {
        self.check_mode(document, report);
        self.check_audit(document, "consultations", report);
        self.check_audit(document, "overlays", report);
        self.check_signing(document, report);
        self.check_match_mode(document, report);
        self.check_traits(document, report);
    }

    fn check_mode(&mut self, document: &Document, report: &mut Report) {
        let Some(node) = document.root.key("mode") else { return };
        let Some(mode) = node.as_str().and_then(Mode::parse) else { return };
        let place = document.place(node.span.clone(), "mode");
        match &self.mode {
            Some((set, above)) if *set != mode => {
                let message = format!("the mode is {}; an ancestor has {}", mode.as_str(), set.as_str());
                let body = Body::new(message).related(above.clone(), "set here");
                let help = "remove `mode`, or write another root: a view cannot change the mode";
                report.refuse(codes::ASSEMBLY_MODE_CHANGE, body.at(place).help(help));
            }
            Some(_) => {}
            None => self.mode = Some((mode, place)),
        }
    }

    fn check_audit(&mut self, document: &Document, which: &'static str, report: &mut Report) {
        let switch = if which == "consultations" { &mut self.consultations } else { &mut self.overlays };
        let Some(node) = document.root.at_path(&["audit", which, "enabled"]) else { return };
        let path = format!("audit.{which}.enabled");
        let place = document.place(node.span.clone(), path.clone());
        match node.kind {
            Kind::Bool(false) if self.root_seen && switch.on => {
                let mut body = Body::new(format!("`{path}` is switched off; an ancestor has it on"));
                if let Some(above) = &switch.set_at {
                    body = body.related(above.clone(), "switched on here");
                }
                let help = "remove it: a view cannot switch off what an ancestor keeps (the default is on)";
                report.refuse(codes::ASSEMBLY_AUDIT_DISABLE, body.at(place).help(help));
            }
            Kind::Bool(on) => *switch = AuditSwitch { on, set_at: Some(place) },
            _ => {}
        }
    }

    fn check_signing(&mut self, document: &Document, report: &mut Report) {
        let Some(node) = document.root.at_path(&["audit", "signing"]) else { return };
        let place = document.place(node.span.clone(), "audit.signing");
        let written = node.as_str().unwrap_or_default();
        match &self.signing_required {
            _ if written == "required" => {
                self.signing_required = self.signing_required.take().or(Some(place))
            }
            Some(above) => {
                let body =
                    Body::new(format!("`audit.signing` is {written}; an ancestor requires signatures"))
                        .related(above.clone(), "required here");
                report.refuse(
                    codes::ASSEMBLY_SIGNING_DOWNGRADE,
                    body.at(place).help("remove it, or write required"),
                );
            }
            None => {}
        }
    }

    fn check_match_mode(&mut self, document: &Document, report: &mut Report) {
        let Some(node) = document.root.key("matchMode") else { return };
        let Some(mode) = node.as_str().and_then(MatchMode::parse) else { return };
        let place = document.place(node.span.clone(), "matchMode");
        let (strictest, above) = &self.match_mode;
        if mode < *strictest {
            let message =
                format!("the match mode is {}; an ancestor has {}", mode.as_str(), strictest.as_str());
            let mut body = Body::new(message);
            if let Some(above) = above {
                body = body.related(above.clone(), "set here");
            }
            let help = "remove `matchMode`; a view may only go from substring to regex to semantic";
            report.refuse(codes::MATCH_MODE_LOOSENED, body.at(place).help(help));
        } else {
            self.match_mode = (mode, Some(place));
        }
    }

    /// A missing list inherits. A list that names none of the ancestors' traits adds to them; one that names some of them
    /// has to name all.
    fn check_traits(&mut self, document: &Document, report: &mut Report) {
        let Some(entry) = document.root.entry("lockedTraits") else { return };
        let listed: Vec<(&str, &Node)> =
            entry.value.items().iter().filter_map(|item| Some((item.as_str()?, item))).collect();
        let texts: HashSet<&str> = listed.iter().map(|(text, _)| *text).collect();
        let place = document.place(entry.key_span.clone(), "lockedTraits");
        let (restated, missing): (Vec<_>, Vec<_>) =
            self.traits.iter().partition(|(known, _)| texts.contains(known.as_str()));
        if !missing.is_empty() && (listed.is_empty() || !restated.is_empty()) {
            refuse_removal(&missing, place, report);
        } else if !missing.is_empty() {
            let body = Body::new(
                "this list names none of the traits that its ancestors lock; all of them still apply",
            );
            let (_, above) = missing[0];
            let body = body.at(place).related(above.clone(), "locked here");
            report.warn(
                codes::LOCKED_TRAITS_NOT_RESTATED,
                body.help("restate them, so that this file shows all traits that apply"),
            );
        }
        let known: HashSet<String> = self.traits.iter().map(|(known, _)| known.clone()).collect();
        for (text, node) in listed.into_iter().filter(|(text, _)| !known.contains(*text)) {
            self.traits.push((text.to_owned(), document.place(node.span.clone(), "lockedTraits")));
        }
    }
}

fn refuse_removal(missing: &[&(String, Place)], place: Place, report: &mut Report) {
    const CODE: RefusalCode = codes::ASSEMBLY_LOCKED_TRAIT_REMOVED;
    let names: Vec<String> = missing.iter().map(|(text, _)| format!("`{text}`")).collect();
    let what =
        if names.len() == 1 { "a locked trait of an ancestor is" } else { "locked traits of ancestors are" };
    let mut body = Body::new(format!("{what} left out: {}", names.join(", "))).at(place);
    for (_, above) in missing {
        body = body.related(above.clone(), "locked here");
    }
    report.refuse(
        CODE,
        body.help("restate all of them, or remove `lockedTraits`: a view cannot unlock a trait"),
    );
}
