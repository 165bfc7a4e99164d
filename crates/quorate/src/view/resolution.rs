//! A resolved assembly: as a document, as a self-contained YAML manifest, and as JSON.

use std::fmt::Write as _;
use std::sync::Arc;

use quorate_diagnostics::render::machine::diagnostics_json;
use quorate_manifest::assembly::load::{
    DeclaredTrait, ModeSettings, ResolvedAssembly, ResolvedMember, Retention,
};
use quorate_manifest::assembly::{Grouping, MatchMode, Mode, Signing, Trigger};
use quorate_manifest::document::Document;
use quorate_manifest::tree::{Node, emit};
use serde_json::{Map, Value, json};

use super::doc::{Doc, Table, Text, Tone};
use super::layout::one_line;
use crate::error::Error;
use crate::service::resolve::{FieldOrigin, Resolution, disk_path};

impl Resolution {
    /// The assembly: its chain, its members, its rules and its settings.
    pub fn doc(&self) -> Doc {
        let resolved = &self.resolved;
        let mut doc = Doc::new();
        let title = Text::strong(&resolved.title).and(format!("  {} {}  ", resolved.name, resolved.version));
        doc.title(title.and(Text::strong(resolved.mode.as_str())));
        doc.prose(&resolved.description);
        doc.table(chain(resolved));
        match resolved.members.is_empty() {
            true => doc.line("No members."),
            false => doc.table(members(resolved)),
        }
        match resolved.rules.is_empty() {
            true => doc.line("No synthesis rules."),
            false => doc.table(rules(resolved)),
        }
        doc.facts(facts(resolved));
        doc
    }

    /// The merged manifest as a root manifest, which can replace the leaf's ASSEMBLY.md.
    ///
    /// # Errors
    /// If one manifest cannot lock all locked traits of the chain.
    pub fn yaml(&self) -> Result<String, Error> {
        let (resolved, manifest) = (&self.resolved, self.flatten()?);
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
        Ok(out)
    }

    /// `{assembly, mode, chain, effective, members, origins, warnings}`.
    pub fn json(&self) -> Value {
        let resolved = &self.resolved;
        let path = |document: &Document| disk_path(&self.root, document).display().to_string();
        let link = |document: &Arc<Document>| {
            json!({
                "path": path(document),
                "name": document.root.key("name").and_then(Node::as_str),
                "version": document.root.key("version").and_then(Node::as_str),
                "sha256": document.sha256,
            })
        };
        let member = |member: &ResolvedMember| {
            let persona = &member.persona;
            let file = |place| self.root.join(place).display().to_string();
            let mut object = json!({
                "id": &*member.id,
                "role": member.role,
                "persona": {
                    "ref": persona.reference,
                    "path": persona.path.as_ref().map(|location| file(location.workspace_relative())),
                    "title": persona.title,
                },
                "timeout_ms": member.timeout_ms,
                "gatherInput": {"strategy": member.gather.strategy, "params": member.gather.params},
                "manifest": path(&resolved.chain.documents[member.document]),
            });
            match &member.mode_settings {
                ModeSettings::Advisory { phase, triggers } => {
                    let words =
                        |all: &Vec<Trigger>| all.iter().copied().map(Trigger::as_str).collect::<Vec<_>>();
                    object["phase"] = json!(phase);
                    object["triggers"] = json!(triggers.as_ref().map(words));
                }
                ModeSettings::Voting { weight, classes } => {
                    object["weight"] = json!(weight.to_string());
                    object["voteClass"] = json!(classes);
                }
                ModeSettings::Hierarchy { parent } => object["parent"] = json!(parent.as_deref()),
                ModeSettings::Peer => {}
            }
            object
        };
        let origin = |origin: FieldOrigin| {
            (origin.field, json!(format!("{}:{}", origin.value.file, origin.value.line)))
        };
        json!({
            "assembly": resolved.name,
            "mode": resolved.mode.as_str(),
            "chain": resolved.chain.documents.iter().map(link).collect::<Vec<_>>(),
            "effective": resolved.chain.merged.to_json(),
            "members": resolved.members.iter().map(member).collect::<Vec<_>>(),
            "origins": self.origins().into_iter().map(origin).collect::<Map<_, _>>(),
            "warnings": diagnostics_json(&self.report),
        })
    }
}

/// Fields with their origins.
pub fn origins(origins: &[FieldOrigin]) -> Doc {
    let mut doc = Doc::new();
    for origin in origins {
        doc.heading(Text::from(format!("{} = {}", origin.field, origin.value.value)));
        doc.line(format!("from {}:{}", origin.value.file, origin.value.line));
        for over in &origin.overridden {
            let value = Text::from(format!("over {}", over.value));
            doc.line(value.and("  ").and(format!("{}:{}", over.file, over.line)));
        }
    }
    doc
}

fn chain(resolved: &ResolvedAssembly) -> Table {
    let field = |document: &Document, key| {
        document.root.key(key).and_then(Node::as_str).unwrap_or_default().to_owned()
    };
    let documents = &resolved.chain.documents;
    let row = |(at, document): (usize, &Arc<Document>)| {
        [at.to_string(), document.shown.to_string(), field(document, "name"), field(document, "version")]
    };
    let heading = if documents.len() == 1 { "manifest" } else { "chain, root first" };
    Table::new(["", heading, "name", "version"]).with_rows((1..).zip(documents).map(row))
}

/// The number of a document in the chain's table; `None` if there is only one.
fn from(resolved: &ResolvedAssembly, document: usize) -> Option<String> {
    (resolved.chain.documents.len() > 1).then(|| (document + 1).to_string())
}

/// The heading of these numbers, if there is more than one document.
fn from_heading(resolved: &ResolvedAssembly) -> Option<&'static str> {
    (resolved.chain.documents.len() > 1).then_some("from")
}

fn members(resolved: &ResolvedAssembly) -> Table {
    let headings: &[&str] = match resolved.mode {
        Mode::Advisory => &["phase", "triggers"],
        Mode::Voting => &["weight", "classes"],
        Mode::Peer | Mode::Hierarchy => &[],
    };
    let all = ["member", "role", "persona"].into_iter().chain(headings.iter().copied());
    let rows = order(resolved).into_iter().map(|(branch, member)| {
        let mut row = vec![
            Text::from(branch).and(Text::strong(&*member.id)),
            Text::from(&member.role),
            Text::from(member.persona.reference.trim_start_matches("ws://personas/")),
        ];
        row.extend(cells(member));
        row.push(seconds(member.timeout_ms).into());
        row.extend(from(resolved, member.document).map(Text::from));
        row
    });
    Table::new(all.chain(["timeout"]).chain(from_heading(resolved))).with_rows(rows)
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
fn cells(member: &ResolvedMember) -> Vec<Text> {
    let none = || Text::toned(Tone::Absent, "none");
    match &member.mode_settings {
        ModeSettings::Advisory { phase, triggers } => {
            let words =
                |all: &Vec<Trigger>| all.iter().copied().map(Trigger::as_str).collect::<Vec<_>>().join(", ");
            let triggers = triggers.as_ref().map_or_else(|| "all".to_owned(), words);
            vec![phase.as_ref().map_or_else(none, Text::from), triggers.into()]
        }
        ModeSettings::Voting { weight, classes } => {
            let classes = match classes.as_deref() {
                None => "all".into(),
                Some([]) => none(),
                Some(classes) => classes.join(", ").into(),
            };
            vec![weight.to_string().into(), classes]
        }
        ModeSettings::Peer | ModeSettings::Hierarchy { .. } => Vec::new(),
    }
}

fn seconds(timeout_ms: u32) -> String {
    if timeout_ms.is_multiple_of(1000) {
        format!("{} s", timeout_ms / 1000)
    } else {
        format!("{timeout_ms} ms")
    }
}

fn rules(resolved: &ResolvedAssembly) -> Table {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let rows = (1..).zip(&resolved.rules).map(|(at, rule)| {
        let params = rule.params.iter().map(|(key, value)| format!("{key} {}", plain(value)));
        let members = rule.applies_to.as_ref().map_or_else(|| "everybody".to_owned(), |ids| ids.join(", "));
        let mut row: Vec<Text> = vec![
            at.to_string().into(),
            Text::strong(&*rule.id),
            Text::from(&*rule.kind),
            members.into(),
            params.collect::<Vec<_>>().join(", ").into(),
        ];
        row.extend(from(resolved, rule.document).map(Text::from));
        row
    });
    let headings = ["", "rule", "kind", "looks at", "with"].into_iter().chain(from_heading(resolved));
    Table::new(headings).with_rows(rows)
}

fn facts(resolved: &ResolvedAssembly) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let traits: Vec<String> = resolved
        .locked_traits
        .iter()
        .map(|DeclaredTrait { locked, document }| {
            let from = from(resolved, *document).map(|document| format!("from {document}"));
            let declared =
                (resolved.match_mode != MatchMode::default()).then(|| locked.declared.as_str().to_owned());
            let remarks: Vec<String> = declared.into_iter().chain(from).collect();
            if remarks.is_empty() {
                locked.text.clone()
            } else {
                format!("{} ({})", locked.text, remarks.join(", "))
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
        facts.push(("convened", format!("{heuristic}{every}")));
    }
    facts.extend(resolved.refs.iter().map(|(key, reference)| (*key, reference.clone())));
    if !resolved.applies_to.is_empty() {
        facts.push(("applies to", resolved.applies_to.join(", ")));
    }
    facts
}

fn signing(resolved: &ResolvedAssembly) -> &'static str {
    match resolved.audit.signing {
        Signing::Required => "required",
        Signing::Optional => "optional",
        Signing::None => "none",
    }
}
