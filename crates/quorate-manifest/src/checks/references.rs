//! Checks of refs, each in the scope of the document that contains it (M10, M14): identity, governance, work and executor, the
//! personas of members, and the consumers of a view.
//!
//! A member without its persona cannot be asked, and the rules do not fit a smaller roster. A consumer that the same command
//! declares gets a warning instead of a refusal (M15).

use quorate_diagnostics::text::shell_quoted;
use quorate_diagnostics::{Body, codes};

use super::CheckContext;
use crate::loader::{Refs, Unresolved};
use crate::tree::Node;
use crate::workspace::WorkspacePath;

/// The keys whose refs must resolve.
pub(crate) const REF_KEYS: [&str; 4] = ["identity", "governance", "work", "executor"];

const REF_HELP: &str = "correct the ref, or create its target; `--no-refs` checks only the syntax of refs";

pub(super) fn check_references(view: &CheckContext<'_, '_>) {
    if view.loader.options.refs == Refs::ShapeOnly {
        return;
    }
    for key in REF_KEYS {
        let Some(node) = view.root().key(key) else { continue };
        let Some(text) = node.as_str() else { continue };
        let from = &view.chain.document_of(node).path;
        let resolved = view.loader.resolve(from, text).and_then(|location| match key {
            "governance" if !text.contains("://") => check_readable(view, location),
            _ => Ok(location),
        });
        if let Err(unresolved) = resolved {
            let body =
                Body::new(format!("`{key}` is `{text}`, which cannot be resolved: {}", unresolved.reason));
            let place = view.place(node, key);
            view.refuse(codes::ASSEMBLY_XREF_UNRESOLVABLE, body.at(place).help(unresolved.help(REF_HELP)));
        }
    }
}

/// The text of a governance file is needed (D9).
fn check_readable(view: &CheckContext<'_, '_>, location: WorkspacePath) -> Result<WorkspacePath, Unresolved> {
    match view.loader.workspace.read(&location) {
        Ok(_) => Ok(location),
        Err(error) => Err(Unresolved {
            reason: format!("`{}` cannot be read: {error}", view.loader.display_name(&location)),
            outside_scope: false,
            suggestion: None,
        }),
    }
}

/// The refs of a resolved assembly, by key.
pub(crate) fn references(root: &Node) -> std::collections::BTreeMap<&'static str, String> {
    REF_KEYS.into_iter().filter_map(|key| Some((key, root.key(key)?.as_str()?.to_owned()))).collect()
}

pub(super) fn check_applies_to(view: &CheckContext<'_, '_>) {
    if view.loader.options.refs == Refs::ShapeOnly {
        return;
    }
    let leaf = view.chain.leaf();
    for (at, item) in leaf.root.items_at(&["appliesTo"]).iter().enumerate() {
        let Some(text) = item.as_str() else { continue };
        let Err(unresolved) = view.loader.resolve(&leaf.path, text) else { continue };
        let place = leaf.place(item.span.clone(), format!("appliesTo[{at}]"));
        let body = Body::new(format!("`{text}` cannot be resolved: {}", unresolved.reason)).at(place);
        if view.loader.is_planned(leaf.path.scope(), text) {
            view.warn(
                codes::XREF_PLANNED,
                body.help("move the operator's file to `operators/<id>/OPERATOR.md`: this command checks it at another path"),
            );
        } else {
            let help = "create the consumer first, or remove it from `appliesTo`";
            view.refuse(codes::ASSEMBLY_APPLIESTO_UNRESOLVABLE, body.help(unresolved.help(help)));
        }
    }
}

pub(super) fn check_personas(view: &CheckContext<'_, '_>) {
    if view.loader.options.refs == Refs::ShapeOnly {
        return;
    }
    for (at, member) in view.members().iter().enumerate() {
        let Some(node) = member.key("persona") else { continue };
        let Some(reference) = node.as_str() else { continue };
        let from = &view.chain.document_of(node).path;
        let found = view.loader.find_persona(from, reference);
        if let Err(why) = &*found {
            let id = member.text_of("id").unwrap_or_default();
            let body =
                Body::new(format!("the persona of `{id}`, `{reference}`, cannot be used: {}", why.reason));
            let name = shell_quoted(reference.rsplit('/').next().unwrap_or_default());
            let help = format!("run `quorate init persona --name {name}` to create it, or correct the ref");
            let body = why.explain(body, &help);
            let place = view.place(node, format!("members[{at}].persona"));
            view.refuse(codes::ASSEMBLY_MEMBER_PERSONA_UNRESOLVABLE, body.at(place));
        }
    }
}
