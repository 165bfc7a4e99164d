//! The canonical order of keys: how an order is declared, and the order of each kind of manifest.

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

/// One step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathSegment<'t> {
    /// The value of a key.
    Key(&'t str),
    /// Any item of a list.
    Item,
}

impl Order {
    /// Makes an order from paths, each with the keys of its mapping. A path has the keys to a mapping, joined by dots; `[]`
    /// after a key is any item of its list, `*` is any key; the root's path is empty. The first matching path applies.
    pub const fn new(mappings: &'static [(&'static str, &'static str)]) -> Order {
        Order { mappings }
    }

    /// The ordered keys of a mapping; `None` for a mapping that keeps its order.
    pub(super) fn keys(&self, path: &[PathSegment<'_>]) -> Option<Vec<&'static str>> {
        let (_, keys) = self.mappings.iter().find(|(pattern, _)| matches_path(pattern, path))?;
        Some(keys.split(' ').collect())
    }
}

fn matches_path(pattern: &str, path: &[PathSegment<'_>]) -> bool {
    let mut path = path.iter();
    for part in pattern.split('.').filter(|part| !part.is_empty()) {
        let key = part.trim_end_matches("[]");
        let items = (part.len() - key.len()) / 2;
        let step = if key.is_empty() { Some(true) } else { path.next().map(|step| matches_step(*step, key)) };
        let fine = step == Some(true) && (0..items).all(|_| path.next() == Some(&PathSegment::Item));
        if !fine {
            return false;
        }
    }
    path.next().is_none()
}

fn matches_step(step: PathSegment<'_>, key: &str) -> bool {
    matches!(step, PathSegment::Key(written) if key == "*" || key == written)
}

#[cfg(test)]
mod tests {
    use super::PathSegment::{Item, Key};
    use super::*;

    #[test]
    fn paths_lead_to_mappings() {
        let cases: [(&str, &[PathSegment<'_>], bool); 10] = [
            ("", &[], true),
            ("", &[Key("a")], false),
            ("a", &[Key("a")], true),
            ("a", &[Key("b")], false),
            ("a.b", &[Key("a"), Key("b")], true),
            ("a[]", &[Key("a"), Item], true),
            ("a[]", &[Key("a")], false),
            ("a[][].b", &[Key("a"), Item, Item, Key("b")], true),
            ("*.b", &[Key("x.y"), Key("b")], true),
            ("[]", &[Item], true),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(matches_path(pattern, path), expected, "{pattern} {path:?}");
        }
    }
}
