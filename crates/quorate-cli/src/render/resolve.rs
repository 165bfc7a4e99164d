//! A resolved assembly: as text, as a self-contained YAML manifest, and as JSON.

use std::fmt::Write as _;

use quorate_diagnostics::render::TextOptions;
use quorate_diagnostics::render::machine::diagnostics_json;
use quorate_manifest::assembly::Grouping;
use quorate_manifest::assembly::Trigger;
use quorate_manifest::assembly::load::{ModeSettings, ResolvedAssembly, ResolvedMember, Retention};
use quorate_manifest::assembly::{MatchMode, Mode};
use quorate_manifest::document::Document;
use quorate_manifest::tree::{Node, emit};
use serde_json::{Map, Value, json};

use super::layout::{Paint, finish, one_line};
use super::layout::{hanging, prose, table};
use quorate::service::resolve::FlatManifest;
use quorate::service::resolve::{FieldOrigin, Resolution, disk_path};

const LABEL: usize = 14;

pub(crate) fn human(view: &Resolution, options: TextOptions) -> String {
    let resolved = &view.resolved;
    let mut out = format!(
        "{}  {} {}  {}\n\n",
        Paint::Strong.on(&one_line(&resolved.title)),
        one_line(&resolved.name),
        one_line(&resolved.version),
        Paint::Strong.on(resolved.mode.as_str())
    );
    out.push_str(&prose(&resolved.description, 2, options.width));
    out.push('\n');
    out.push_str(&chain(resolved, options));
    out.push('\n');
    out.push_str(&members(resolved, options));
    out.push('\n');
    out.push_str(&rules(resolved, options));
    for (label, text) in facts(resolved) {
        out.push_str(&hanging(&format!("{label:<LABEL$}"), &text, 2, options.width));
    }
    finish(&out, options)
}

fn chain(resolved: &ResolvedAssembly, options: TextOptions) -> String {
    let field_of = |document: &Document, key| {
        one_line(document.root.key(key).and_then(Node::as_str).unwrap_or_default())
    };
    let documents = &resolved.chain.documents;
    let row = |(at, document): (usize, &std::sync::Arc<Document>)| {
        vec![
            at.to_string(),
            one_line(&document.shown),
            field_of(document, "name"),
            field_of(document, "version"),
        ]
    };
    let heading = if documents.len() == 1 { "manifest" } else { "chain, root first" };
    table(&["", heading, "name", "version"], (1..).zip(documents).map(row).collect(), 2, options.width)
}

/// The number of a document in the chain's table; `None` if there is only one.
fn from(resolved: &ResolvedAssembly, document: usize) -> Option<String> {
    (resolved.chain.documents.len() > 1).then(|| (document + 1).to_string())
}

/// The heading of these numbers, if there is more than one document.
fn from_heading(resolved: &ResolvedAssembly) -> Option<&'static str> {
    (resolved.chain.documents.len() > 1).then_some("from")
}

fn members(resolved: &ResolvedAssembly, options: TextOptions) -> String {
    if resolved.members.is_empty() {
        return "  No members.\n".to_owned();
    }
    let headings: &[&str] = match resolved.mode {
        Mode::Advisory => &["phase", "triggers"],
        Mode::Voting => &["weight", "classes"],
        Mode::Peer | Mode::Hierarchy => &[],
    };
    let mut all = vec!["member", "role", "persona"];
    all.extend(headings);
    all.push("timeout");
    all.extend(from_heading(resolved));
    let roster = order(resolved);
    let rows = roster
        .iter()
        .map(|(branch, member)| {
            let mut row = vec![
                format!("{branch}{}", Paint::Strong.on(&one_line(&member.id))),
                one_line(&member.role),
                one_line(member.persona.reference.trim_start_matches("ws://personas/")),
            ];
            row.extend(cells(member));
            row.push(seconds(member.timeout_ms));
            row.extend(from(resolved, member.document));
            row
        })
        .collect();
    table(&all, rows, 2, options.width)
}

/// The members in display order, each with its branch: a hierarchy as a tree, an advisory assembly by phase, and with
/// `display.defaultGrouping` by role (A7).
fn order(resolved: &ResolvedAssembly) -> Vec<(String, &ResolvedMember)> {
    let parent = |member: &ResolvedMember| match &member.mode_settings {
        ModeSettings::Hierarchy { parent } => parent.clone(),
        _ => None,
    };
    let mut members: Vec<&ResolvedMember> = resolved.members.iter().collect();
    if resolved.mode != Mode::Hierarchy {
        let phase = |member: &&ResolvedMember| match &member.mode_settings {
            ModeSettings::Advisory { phase: Some(phase), .. } => {
                members_phase(resolved).iter().position(|known| *known == phase).unwrap_or(usize::MAX)
            }
            _ => usize::MAX,
        };
        members.sort_by_key(phase);
        if resolved.display.as_ref().and_then(|display| display.default_grouping) == Some(Grouping::Role) {
            members.sort_by(|a, b| a.role.cmp(&b.role));
        }
        return members.into_iter().map(|member| (String::new(), member)).collect();
    }
    let mut out = Vec::new();
    let mut open: Vec<(String, String, &ResolvedMember)> = members
        .iter()
        .rev()
        .filter(|member| parent(member).is_none())
        .map(|member| (String::new(), String::new(), *member))
        .collect();
    while let Some((branch, below, member)) = open.pop() {
        let children: Vec<&ResolvedMember> =
            members.iter().copied().filter(|member| parent(member).as_ref() == Some(&member.id)).collect();
        for (at, child) in children.iter().enumerate().rev() {
            let last = at + 1 == children.len();
            let (arm, gap) = if last { ("└─", "  ") } else { ("├─", "│ ") };
            open.push((format!("{below}{arm}"), format!("{below}{gap}"), child));
        }
        out.push((branch, member));
    }
    out
}

/// The phases in the order of their first member.
fn members_phase(resolved: &ResolvedAssembly) -> Vec<&String> {
    let mut phases = Vec::new();
    for member in &resolved.members {
        if let ModeSettings::Advisory { phase: Some(phase), .. } = &member.mode_settings
            && !phases.contains(&phase)
        {
            phases.push(phase);
        }
    }
    phases
}

/// A member's values in the columns of its mode.
fn cells(member: &ResolvedMember) -> Vec<String> {
    match &member.mode_settings {
        ModeSettings::Advisory { phase, triggers } => advisory(phase.as_deref(), triggers.as_deref()),
        ModeSettings::Voting { weight, classes } => voting(&weight.to_string(), classes.as_deref()),
        ModeSettings::Peer | ModeSettings::Hierarchy { .. } => Vec::new(),
    }
}

fn advisory(phase: Option<&str>, triggers: Option<&[Trigger]>) -> Vec<String> {
    let phase = phase.map_or_else(|| Paint::Absent.on("none"), one_line);
    let triggers = triggers.as_ref().map_or_else(
        || "all".to_owned(),
        |all| all.iter().map(|word| trigger(*word)).collect::<Vec<_>>().join(", "),
    );
    vec![phase, triggers]
}

fn voting(weight: &str, classes: Option<&[String]>) -> Vec<String> {
    let classes = match classes {
        None => "all".to_owned(),
        Some([]) => Paint::Absent.on("none"),
        Some(classes) => one_line(&classes.join(", ")),
    };
    vec![weight.to_owned(), classes]
}

fn trigger(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::Sample => "sample",
        Trigger::SentinelMatch => "sentinel-match",
        Trigger::Scheduled => "scheduled",
        Trigger::Manual => "manual",
        Trigger::Periodic => "periodic",
    }
}

fn seconds(timeout_ms: u32) -> String {
    if timeout_ms.is_multiple_of(1000) {
        format!("{} s", timeout_ms / 1000)
    } else {
        format!("{timeout_ms} ms")
    }
}

fn rules(resolved: &ResolvedAssembly, options: TextOptions) -> String {
    if resolved.rules.is_empty() {
        return "  No synthesis rules.\n\n".to_owned();
    }
    let rows = (1..)
        .zip(&resolved.rules)
        .map(|(at, rule)| {
            let params: Vec<String> =
                rule.params.iter().map(|(key, value)| format!("{key} {}", plain(value))).collect();
            let members = rule
                .applies_to
                .as_ref()
                .map_or_else(|| "everybody".to_owned(), |ids| one_line(&ids.join(", ")));
            let with = one_line(&params.join(", "));
            let mut row = vec![
                at.to_string(),
                Paint::Strong.on(&one_line(&rule.id)),
                one_line(&rule.kind),
                members,
                with,
            ];
            row.extend(from(resolved, rule.document));
            row
        })
        .collect();
    let mut headings = vec!["", "rule", "kind", "looks at", "with"];
    headings.extend(from_heading(resolved));
    table(&headings, rows, 2, options.width) + "\n"
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn facts(resolved: &ResolvedAssembly) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let traits: Vec<String> = resolved
        .locked_traits
        .iter()
        .map(|locked| {
            let from = from(resolved, locked.document).map(|document| format!("from {document}"));
            let declared = (resolved.match_mode != MatchMode::default())
                .then(|| locked.declared_match_mode.as_str().to_owned());
            let remarks: Vec<String> = declared.into_iter().chain(from).collect();
            if remarks.is_empty() {
                one_line(&locked.text)
            } else {
                format!("{} ({})", one_line(&locked.text), remarks.join(", "))
            }
        })
        .collect();
    facts.push(("locked traits", if traits.is_empty() { "none".to_owned() } else { traits.join("; ") }));
    if resolved.match_mode != MatchMode::default() {
        facts.push(("match mode", resolved.match_mode.as_str().to_owned()));
    }
    let audit = &resolved.audit;
    let retention = |retention| if retention == Retention::Full { "kept" } else { "hashes only" };
    let days = audit.retention_days.map_or_else(|| "for ever".to_owned(), |days| format!("for {days} days"));
    facts.push((
        "audit",
        format!(
            "consultations {} {days}; outcomes {}, at most {} active, for {}; signing {}",
            retention(audit.consultations),
            retention(audit.overlays),
            audit.max_active,
            audit.default_ttl,
            signing(resolved)
        ),
    ));
    if let Some(heuristic) =
        resolved.defaults.as_ref().and_then(|defaults| defaults.trigger_heuristic.as_ref())
    {
        let every = resolved.defaults.as_ref().and_then(|defaults| defaults.trigger_interval_ms);
        let every = every.map_or_else(String::new, |ms| format!(", every {}", seconds(ms)));
        facts.push(("convened", format!("{}{every}", one_line(heuristic))));
    }
    facts.extend(resolved.refs.iter().map(|(key, reference)| (*key, one_line(reference))));
    if !resolved.applies_to.is_empty() {
        facts.push(("applies to", one_line(&resolved.applies_to.join(", "))));
    }
    facts
}

fn signing(resolved: &ResolvedAssembly) -> &'static str {
    use quorate_manifest::assembly::Signing;
    match resolved.audit.signing {
        Signing::Required => "required",
        Signing::Optional => "optional",
        Signing::None => "none",
    }
}

/// The merged manifest as a root manifest, which can replace the leaf's ASSEMBLY.md.
pub(crate) fn yaml(view: &Resolution, manifest: &FlatManifest) -> String {
    let resolved = &view.resolved;
    let mut out = String::from("---\n# resolved, root first:\n");
    for document in &resolved.chain.documents {
        let _ = writeln!(out, "#   {}", one_line(&document.shown));
    }
    if !resolved.applies_to.is_empty() {
        let _ = writeln!(out, "# applies to: {}", one_line(&resolved.applies_to.join(", ")));
    }
    for remark in &manifest.remarks {
        let _ = writeln!(out, "# {}", one_line(remark));
    }
    out.push_str(&emit(&manifest.root));
    out.push_str("---\n");
    out
}

/// `{assembly, mode, chain, effective, members, origins, warnings}`.
pub(crate) fn json(view: &Resolution) -> String {
    let resolved = &view.resolved;
    let chain: Vec<Value> = resolved
        .chain
        .documents
        .iter()
        .map(|document| {
            json!({
                "path": disk_path(&view.root, document).display().to_string(),
                "name": document.root.key("name").and_then(Node::as_str),
                "version": document.root.key("version").and_then(Node::as_str),
                "sha256": document.sha256,
            })
        })
        .collect();
    let path =
        |document: usize| disk_path(&view.root, &resolved.chain.documents[document]).display().to_string();
    let members: Vec<Value> = resolved
        .members
        .iter()
        .map(|member| {
            let mut object = Map::new();
            object.insert("id".to_owned(), json!(&*member.id));
            object.insert("role".to_owned(), json!(member.role));
            object.insert(
                "persona".to_owned(),
                json!({
                    "ref": member.persona.reference,
                    "path": member.persona.path.as_ref().map(|location| view.root.join(location.workspace_relative()).display().to_string()),
                    "title": member.persona.title,
                }),
            );
            match &member.mode_settings {
                ModeSettings::Advisory { phase, triggers } => {
                    object.insert("phase".to_owned(), json!(phase));
                    let words = triggers.as_ref().map(|all| all.iter().map(|word| trigger(*word)).collect::<Vec<_>>());
                    object.insert("triggers".to_owned(), json!(words));
                }
                ModeSettings::Voting { weight, classes } => {
                    object.insert("weight".to_owned(), json!(weight.to_string()));
                    object.insert("voteClass".to_owned(), json!(classes));
                }
                ModeSettings::Hierarchy { parent } => {
                    object.insert("parent".to_owned(), json!(parent.as_deref()));
                }
                ModeSettings::Peer => {}
            }
            object.insert("timeout_ms".to_owned(), json!(member.timeout_ms));
            object.insert("gatherInput".to_owned(), json!({"strategy": member.gather.strategy, "params": member.gather.params}));
            object.insert("manifest".to_owned(), json!(path(member.document)));
            Value::Object(object)
        })
        .collect();
    let origins: Map<String, Value> = view
        .origins()
        .into_iter()
        .map(|origin| (origin.field, json!(format!("{}:{}", origin.file, origin.line))))
        .collect();
    let value = json!({
        "assembly": resolved.name,
        "mode": resolved.mode.as_str(),
        "chain": chain,
        "effective": resolved.chain.merged.to_json(),
        "members": members,
        "origins": origins,
        "warnings": diagnostics_json(&view.report),
    });
    format!("{value:#}\n")
}

/// Fields with their origins, as text.
pub(crate) fn explain(origins: &[FieldOrigin], options: TextOptions) -> String {
    let mut out = String::new();
    for origin in origins {
        let _ = writeln!(
            out,
            "{} = {}",
            Paint::Strong.on(&one_line(&origin.field)),
            one_line(&origin.value.to_string())
        );
        let _ = writeln!(out, "  from {}:{}", one_line(&origin.file), origin.line);
        for overridden in &origin.overridden {
            let _ = writeln!(
                out,
                "  over {}  {}:{}",
                one_line(&overridden.value.to_string()),
                one_line(&overridden.file),
                overridden.line
            );
        }
    }
    finish(&out, options)
}

/// `{fields: [{field, value, file, line, overridden: [{value, file, line}]}]}`.
pub(crate) fn explain_json(origins: &[FieldOrigin]) -> String {
    let place =
        |origin: &FieldOrigin| json!({"value": origin.value, "file": origin.file, "line": origin.line});
    let field = |origin: &FieldOrigin| {
        let mut object = place(origin);
        object["field"] = json!(origin.field);
        object["overridden"] = json!(origin.overridden.iter().map(place).collect::<Vec<_>>());
        object
    };
    format!("{:#}\n", json!({ "fields": origins.iter().map(field).collect::<Vec<_>>() }))
}
