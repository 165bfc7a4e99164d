//! `assembly_synthesis_rule_invalid`: a rule of a kind that is not registered or not for this mode, or with invalid
//! parameters (M16). The running program provides the kinds and the schemas of their parameters.

use quorate_diagnostics::{Body, codes};

use crate::assembly::check_context::CheckContext;
use crate::capabilities::RuleKind;
use crate::document::schema_error;
use crate::duration::IsoDuration;
use crate::json_schema::{CompiledSchema, ErrorKind};
use crate::tree::reader::nearest;
use crate::tree::{Kind, Node};

pub(super) fn check(view: &CheckContext<'_, '_>) {
    for (at, rule) in view.rules().iter().enumerate() {
        let Some(node) = rule.key("kind") else { continue };
        let Some(written) = node.as_str() else { continue };
        let path = format!("synthesis.rules[{at}]");
        match view.loader.capabilities.rule_kind(written) {
            None => unknown(view, node, written, &path),
            Some(kind) => {
                if !kind.modes.contains(&view.mode) {
                    wrong_mode(view, node, written, &kind, &path);
                }
                params(view, rule, &kind, &path);
            }
        }
    }
}

fn unknown(view: &CheckContext<'_, '_>, node: &Node, written: &str, path: &str) {
    let known = view.loader.capabilities.rule_kinds();
    let help = match nearest(written, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "the kinds are: {}; a program that uses the library can register its own",
            known.join(", ")
        ),
    };
    let body = Body::new(format!("there is no rule of kind `{written}`"));
    let place = view.place(node, format!("{path}.kind"));
    view.refuse(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, body.at(place).help(help));
}

fn wrong_mode(view: &CheckContext<'_, '_>, node: &Node, written: &str, kind: &RuleKind, path: &str) {
    let modes: Vec<&str> = kind.modes.iter().map(|mode| mode.as_str()).collect();
    let body = Body::new(format!("a rule of kind `{written}` has no meaning in {} mode", view.mode.as_str()));
    let mut body =
        body.at(view.place(node, format!("{path}.kind"))).help(format!("it is for: {}", modes.join(", ")));
    if let Some(mode) = view.root().key("mode") {
        body = body.related(view.place(mode, "mode"), "the mode");
    }
    view.refuse(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, body);
}

fn params(view: &CheckContext<'_, '_>, rule: &Node, kind: &RuleKind, path: &str) {
    let empty = Node { kind: Kind::Map(Vec::new()), ..rule.clone() };
    let params = rule.key("params").unwrap_or(&empty);
    let document = view.chain.document_of(params);
    let Some(schema) = CompiledSchema::parse(&kind.params) else { return };
    for error in schema.errors(params) {
        let (body, span, below) = schema_error::describe(&document.text, params, &error, "params");
        let at = if params.span.is_empty() || std::ptr::eq(params, &raw const empty) {
            view.key_place(rule, "kind", format!("{path}.{below}"))
        } else {
            document.place(span, format!("{path}.{below}"))
        };
        match error.kind {
            // Other programs may read unknown parameters, so they get a warning.
            ErrorKind::UnknownKey { .. } => view.warn(codes::FIELD_WITHOUT_EFFECT, body.at(at)),
            _ => view.refuse(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, body.at(at)),
        }
    }
    for name in kind.member_params {
        let Some(node) = params.key(name) else { continue };
        check_member(view, node, name, format!("{path}.params.{name}"));
    }
    for name in kind.member_map_params {
        for entry in params.key(name).map_or(&[][..], Node::entries) {
            let path = format!("{path}.params.{name}.{}", entry.key);
            if !view.is_member(&entry.key) {
                let body = Body::new(format!("`{}` in `{name}` is not a member", entry.key));
                let place = document.place(entry.key_span.clone(), path.clone());
                view.refuse(
                    codes::ASSEMBLY_SYNTHESIS_RULE_INVALID,
                    body.at(place).help(member_help(view, &entry.key)),
                );
            }
            for (at, node) in entry.value.items().iter().enumerate() {
                check_member(view, node, name, format!("{path}[{at}]"));
            }
        }
    }
    for (name, other_words) in kind.rule_kind_params {
        let Some(node) = params.key(name) else { continue };
        let Some(written) = node.as_str().filter(|written| !other_words.contains(written)) else { continue };
        if view.loader.capabilities.rule_kind(written).is_some() {
            continue;
        }
        let body = Body::new(format!("`{name}` is `{written}`, but there is no rule of that kind"));
        let help = match nearest(written, other_words) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write {}, or a registered kind of rule", other_words.join(", ")),
        };
        let place = view.place(node, format!("{path}.params.{name}"));
        view.refuse(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, body.at(place).help(help));
    }
    for name in kind.duration_params {
        let Some(node) = params.key(name) else { continue };
        let Some(Err(error)) = node.as_str().map(str::parse::<IsoDuration>) else { continue };
        let body = Body::new(format!("`{name}` is not a usable duration: {error}"));
        let place = view.place(node, format!("{path}.params.{name}"));
        view.refuse(codes::DURATION, body.at(place).help("write it like P14D"));
    }
}

/// Refuses a parameter that names no member.
fn check_member(view: &CheckContext<'_, '_>, node: &Node, name: &str, path: String) {
    let Some(id) = node.as_str().filter(|id| !view.is_member(id)) else { return };
    let body = Body::new(format!("`{name}` is `{id}`, but there is no such member"));
    let place = view.place(node, path);
    view.refuse(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, body.at(place).help(member_help(view, id)));
}

fn member_help(view: &CheckContext<'_, '_>, id: &str) -> String {
    let ids = view.member_ids();
    match nearest(id, &ids) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the members are: {}", ids.join(", ")),
    }
}
