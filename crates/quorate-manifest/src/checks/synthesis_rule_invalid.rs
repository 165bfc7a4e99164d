//! `assembly_synthesis_rule_invalid`: a rule of a kind that nobody registered or that is not for this mode, or whose
//! parameters do not fit (M16). Kinds and the schemas of their parameters are the host's.

use quorate_diagnostics::{Body, codes};

use crate::assembly::view::View;
use crate::duration::Iso;
use crate::form::{Fault, Form};
use crate::known::RuleKind;
use crate::layer::misfit;
use crate::tree::reader::nearest;
use crate::tree::{Kind, Node};

pub(super) fn check(view: &View<'_, '_>) {
    for (at, rule) in view.rules().iter().enumerate() {
        let Some(node) = rule.key("kind") else { continue };
        let Some(written) = node.as_str() else { continue };
        let path = format!("synthesis.rules[{at}]");
        match view.round.host.rule(written) {
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

fn unknown(view: &View<'_, '_>, node: &Node, written: &str, path: &str) {
    let known = view.round.host.rules();
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

fn wrong_mode(view: &View<'_, '_>, node: &Node, written: &str, kind: &RuleKind, path: &str) {
    let modes: Vec<&str> = kind.modes.iter().map(|mode| mode.word()).collect();
    let body = Body::new(format!("a rule of kind `{written}` means nothing in {} mode", view.mode.word()));
    let mut body =
        body.at(view.place(node, format!("{path}.kind"))).help(format!("it is for: {}", modes.join(", ")));
    if let Some(mode) = view.root().key("mode") {
        body = body.related(view.place(mode, "mode"), "the mode");
    }
    view.refuse(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, body);
}

fn params(view: &View<'_, '_>, rule: &Node, kind: &RuleKind, path: &str) {
    let empty = Node { kind: Kind::Map(Vec::new()), ..rule.clone() };
    let params = rule.key("params").unwrap_or(&empty);
    let layer = view.chain.layer_of(params);
    let Some(form) = Form::read(&kind.params) else { return };
    for found in form.misfits(params) {
        let (body, span, below) = misfit::told(&layer.text, params, &found, "params");
        let at = if params.span.is_empty() || std::ptr::eq(params, &raw const empty) {
            view.key_place(rule, "kind", format!("{path}.{below}"))
        } else {
            layer.place(span, format!("{path}.{below}"))
        };
        match found.fault {
            // Parameters are open: what another host reads stays, and what nobody reads is said.
            Fault::Unknown { .. } => view.warn(codes::FIELD_WITHOUT_EFFECT, body.at(at)),
            _ => view.refuse(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, body.at(at)),
        }
    }
    for name in kind.names_member {
        let Some(node) = params.key(name) else { continue };
        member(view, node, name, format!("{path}.params.{name}"));
    }
    for name in kind.names_members {
        for entry in params.key(name).map_or(&[][..], Node::entries) {
            let path = format!("{path}.params.{name}.{}", entry.key);
            if !view.is_member(&entry.key) {
                let body = Body::new(format!("`{}` in `{name}` is no member", entry.key));
                let place = layer.place(entry.key_span.clone(), path.clone());
                view.refuse(
                    codes::ASSEMBLY_SYNTHESIS_RULE_INVALID,
                    body.at(place).help(members(view, &entry.key)),
                );
            }
            for (at, node) in entry.value.items().iter().enumerate() {
                member(view, node, name, format!("{path}[{at}]"));
            }
        }
    }
    for (name, instead) in kind.names_kind {
        let Some(node) = params.key(name) else { continue };
        let Some(written) = node.as_str().filter(|written| !instead.contains(written)) else { continue };
        if view.round.host.rule(written).is_some() {
            continue;
        }
        let body = Body::new(format!("`{name}` is `{written}`, and there is no rule of that kind"));
        let help = match nearest(written, instead) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write {}, or the kind of a rule that is registered", instead.join(", ")),
        };
        let place = view.place(node, format!("{path}.params.{name}"));
        view.refuse(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, body.at(place).help(help));
    }
    for name in kind.durations {
        let Some(node) = params.key(name) else { continue };
        let Some(Err(error)) = node.as_str().map(str::parse::<Iso>) else { continue };
        let body = Body::new(format!("`{name}` is no duration that can be used: {error}"));
        let place = view.place(node, format!("{path}.params.{name}"));
        view.refuse(codes::DURATION, body.at(place).help("write it like P14D"));
    }
}

/// A parameter that names a member.
fn member(view: &View<'_, '_>, node: &Node, name: &str, path: String) {
    let Some(id) = node.as_str().filter(|id| !view.is_member(id)) else { return };
    let body = Body::new(format!("`{name}` is `{id}`, and there is no such member"));
    let place = view.place(node, path);
    view.refuse(codes::ASSEMBLY_SYNTHESIS_RULE_INVALID, body.at(place).help(members(view, id)));
}

fn members(view: &View<'_, '_>, id: &str) -> String {
    let ids = view.ids();
    match nearest(id, &ids) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the members are: {}", ids.join(", ")),
    }
}
