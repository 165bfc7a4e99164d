//! The order of keys in each kind of manifest.

use super::Order;

pub const ASSEMBLY: Order = Order::new(&[
    (
        "",
        &[
            "schema",
            "name",
            "title",
            "description",
            "version",
            "extends",
            "appliesTo",
            "mode",
            "members",
            "synthesis",
            "lockedTraits",
            "matchMode",
            "audit",
            "identity",
            "governance",
            "work",
            "executor",
            "defaults",
            "display",
            "metadata",
        ],
    ),
    (
        "members[]",
        &[
            "id",
            "persona",
            "role",
            "phase",
            "triggers",
            "weight",
            "voteClass",
            "parent",
            "timeout_ms",
            "gatherInput",
        ],
    ),
    ("members[].gatherInput", &["strategy", "params"]),
    ("synthesis", &["rules", "riskLevels"]),
    ("synthesis.rules[]", &["id", "kind", "appliesTo", "params"]),
    ("synthesis.riskLevels[]", &["range", "label"]),
    ("audit", &["consultations", "overlays", "signing"]),
    ("audit.consultations", &["enabled", "retention"]),
    ("audit.overlays", &["enabled", "maxActive", "defaultTtl"]),
    ("defaults", &["triggerHeuristic", "triggerInterval_ms"]),
    ("display", &["defaultGrouping"]),
]);

pub const PERSONA: Order = Order::new(&[
    (
        "",
        &[
            "schema",
            "name",
            "title",
            "description",
            "version",
            "extends",
            "avatar",
            "backstory",
            "voice",
            "boundaries",
            "defaultLocale",
            "multilingual",
            "relationships",
            "identity",
            "appliesTo",
            "tags",
            "metadata",
        ],
    ),
    ("backstory", &["oneLineHook", "background", "archetypes", "era", "setting"]),
    ("voice", &["register", "signaturePhrases", "tonality", "formality", "emojiUsage", "signOff"]),
    ("boundaries", &["refuses", "defers", "redirects"]),
    ("boundaries.redirects[]", &["topic", "to", "notes"]),
    ("relationships[]", &["persona", "kind", "notes"]),
]);

pub const PLAYBOOK: Order = Order::new(&[
    (
        "",
        &[
            "schema",
            "slug",
            "title",
            "entry",
            "targets",
            "selector",
            "kind",
            "block",
            "priority",
            "lock_check",
            "ttl",
            "evidence",
            "status",
            "supersedes",
            "history",
            "binds_operator",
            "created_at",
            "updated_at",
            "tags",
            "metadata",
        ],
    ),
    ("targets[]", &["kind", "ref"]),
    ("selector.allOf[]", &["axis", "anyOf"]),
    ("selector.anyOf[]", &["axis", "anyOf"]),
    ("evidence[]", &["kind", "ref", "note"]),
    ("history[]", &["at", "kind", "summary", "source", "by", "gate"]),
]);

/// The runtime of several agents.
pub const RUNTIME: Order = Order::new(&[
    (
        "",
        &[
            "schema",
            "kind",
            "id",
            "participants",
            "substrate",
            "dispatcher",
            "state",
            "lifecycle",
            "effectors",
            "provisioning",
        ],
    ),
    ("participants[]", &["id", "executor", "displayName", "role", "meta"]),
    ("lifecycle", &["onTurnEnd", "onMention", "onIdle"]),
    ("effectors[]", &["participantId", "tools", "mcpServers"]),
]);

pub const OPERATOR: Order = Order::new(&[(
    "",
    &["id", "name", "role", "persona", "skills", "capabilities", "locks", "runtime", "metadata"],
)]);

/// `council.yaml`.
pub const COUNCIL: Order = Order::new(&[
    (
        "",
        &[
            "version",
            "runtime",
            "deliberators",
            "adjudicator",
            "protocol",
            "tier_classifier",
            "tier_rules",
            "watch",
            "logging",
        ],
    ),
    ("deliberators[]", &["id", "prompt", "weight", "context_refs"]),
    ("adjudicator", &["prompt", "verdict_policy"]),
    ("protocol", &["rounds", "cross_read", "fail_fast_on_runtime_error", "min_deliberators_for_verdict"]),
    ("tier_classifier", &["type", "default_tier"]),
    ("tier_rules", &["tier_1", "tier_2", "tier_3"]),
    ("watch", &["paths", "tier_overrides"]),
    ("logging", &["log_path", "archive_dir", "log_format", "redact_patterns"]),
    // Other keys are the adapter's.
    ("runtime", &["type"]),
]);
