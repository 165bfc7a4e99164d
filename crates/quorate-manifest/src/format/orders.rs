//! The canonical order of keys: how an order is declared, and the order of each kind of manifest.

use crate::tree::{Kind, Node};

pub const ASSEMBLY: Order = Order::new(&[
    (
        "",
        "schema name title description version extends appliesTo mode members synthesis lockedTraits \
         matchMode audit identity governance work executor defaults display metadata",
    ),
    ("members[]", "id persona role phase triggers weight voteClass parent timeout_ms gatherInput"),
    ("members[].gatherInput", "strategy params"),
    ("synthesis", "rules riskLevels"),
    ("synthesis.rules[]", "id kind appliesTo params"),
    ("synthesis.riskLevels[]", "range label"),
    ("audit", "consultations overlays signing"),
    ("audit.consultations", "enabled retention"),
    ("audit.overlays", "enabled maxActive defaultTtl"),
    ("defaults", "triggerHeuristic triggerInterval_ms"),
    ("display", "defaultGrouping"),
]);

pub const PERSONA: Order = Order::new(&[
    (
        "",
        "schema name title description version extends avatar backstory voice boundaries defaultLocale \
         multilingual relationships identity appliesTo tags metadata",
    ),
    ("backstory", "oneLineHook background archetypes era setting"),
    ("voice", "register signaturePhrases tonality formality emojiUsage signOff"),
    ("boundaries", "refuses defers redirects"),
    ("boundaries.redirects[]", "topic to notes"),
    ("relationships[]", "persona kind notes"),
]);

pub const PLAYBOOK: Order = Order::new(&[
    (
        "",
        "schema slug title entry targets selector kind block priority lock_check ttl evidence status \
         supersedes history binds_operator created_at updated_at tags metadata",
    ),
    ("targets[]", "kind ref"),
    ("selector.allOf[]", "axis anyOf"),
    ("selector.anyOf[]", "axis anyOf"),
    ("evidence[]", "kind ref note"),
    ("history[]", "at kind summary source by gate"),
]);

/// The runtime of several agents.
pub const RUNTIME: Order = Order::new(&[
    ("", "schema kind id participants substrate dispatcher state lifecycle effectors provisioning"),
    ("participants[]", "id executor displayName role meta"),
    ("lifecycle", "onTurnEnd onMention onIdle"),
    ("effectors[]", "participantId tools mcpServers"),
]);

pub const OPERATOR: Order =
    Order::new(&[("", "id name role persona skills capabilities locks runtime metadata")]);

/// `council.yaml`.
pub const COUNCIL: Order = Order::new(&[
    ("", "version runtime deliberators adjudicator policy protocol tier_classifier tier_rules watch logging"),
    ("deliberators[]", "id prompt executor model weight context_refs"),
    ("adjudicator", "prompt executor model verdict_policy"),
    ("policy[]", "if then or"),
    ("protocol", "rounds cross_read fail_fast_on_runtime_error min_deliberators_for_verdict"),
    ("tier_classifier", "type default_tier"),
    ("tier_rules", "tier_1 tier_2 tier_3"),
    ("watch", "paths tier_overrides"),
    ("logging", "log_path archive_dir log_format redact_patterns"),
    // Other keys are the adapter's.
    ("runtime", "type"),
]);

/// The canonical order of keys, for each mapping that has one. Other mappings keep their order; unknown keys come after
/// the known ones, in file order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    mappings: &'static [(&'static str, &'static str)],
}

impl Order {
    /// Makes an order from paths, each with the keys of its mapping. A path has the keys to a mapping, joined by dots; `[]`
    /// after a key is any item of its list; the root's path is empty.
    pub(super) const fn new(mappings: &'static [(&'static str, &'static str)]) -> Order {
        Order { mappings }
    }

    /// The ordered keys of a mapping; `None` for a mapping that keeps its order.
    pub(super) fn keys(&self, path: &str) -> Option<Vec<&'static str>> {
        let (_, keys) = self.mappings.iter().find(|(known, _)| *known == path)?;
        Some(keys.split(' ').collect())
    }

    /// The position of a key in the root; unknown keys come last.
    pub(crate) fn rank(&self, key: &str) -> usize {
        let keys = self.keys("").unwrap_or_default();
        keys.iter().position(|known| *known == key).unwrap_or(keys.len())
    }

    /// Orders the keys of a tree at a path.
    pub(crate) fn arrange(&self, node: &mut Node, path: &str) {
        match &mut node.kind {
            Kind::Seq(items) => items.iter_mut().for_each(|item| self.arrange(item, &below(path, None))),
            Kind::Map(entries) => {
                for entry in entries.iter_mut() {
                    self.arrange(&mut entry.value, &below(path, Some(&entry.key)));
                }
                if let Some(keys) = self.keys(path) {
                    entries.sort_by_key(|entry| {
                        keys.iter().position(|key| *key == entry.key).unwrap_or(keys.len())
                    });
                }
            }
            _ => {}
        }
    }
}

/// The path of a key's value, or of an item.
pub(super) fn below(path: &str, key: Option<&str>) -> String {
    match key {
        None => format!("{path}[]"),
        Some(key) if path.is_empty() => key.to_owned(),
        Some(key) => format!("{path}.{key}"),
    }
}
