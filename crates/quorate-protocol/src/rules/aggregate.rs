//! `aggregate`: the gravest outputs, sorted; in peer mode the conduct of the rounds (A3, P1, P2, H2).

use quorate_manifest::assembly::Mode;
use quorate_manifest::known::{Ends, RuleKind};
use serde_json::json;

/// The kind as a manifest writes it.
pub const KIND: &str = "aggregate";

/// What a manifest may say about such a rule.
pub fn kind() -> RuleKind {
    RuleKind {
        modes: vec![Mode::Advisory, Mode::Peer, Mode::Hierarchy],
        names_member: &["hub"],
        ends: Ends::No,
        params: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "minSeverity": {"type": "integer", "minimum": 0, "maximum": 10},
                "maxSeverity": {"type": "integer", "minimum": 0, "maximum": 10},
                "topN": {"type": "integer", "minimum": 1},
                "priority": {"type": "integer", "minimum": 0, "maximum": 100},
                "priorityBase": {"type": "integer", "minimum": 0, "maximum": 100},
                "ttl": {"type": "string", "minLength": 2},
                "ttlMs": {"type": "integer", "minimum": 1},
                "maxRounds": {"type": "integer", "minimum": 1, "maximum": 100},
                "terminationRule": {"type": "string", "minLength": 1},
                "topology": {"enum": ["fully-connected", "ring", "star"]},
                "hub": {"type": "string", "minLength": 1},
                "peers": {
                    "type": "object",
                    "additionalProperties": {"type": "array", "items": {"type": "string", "minLength": 1}}
                },
                "terminal": {"type": "boolean"}
            }
        }),
    }
}
