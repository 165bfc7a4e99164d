//! The order of keys in each kind of file.

use super::super::{Order, format, orders};

#[track_caller]
fn formats(order: &Order, text: &str, expected: &str) {
    assert_eq!(format(text, order).as_deref(), Ok(expected));
}

#[test]
fn an_assembly() {
    formats(
        &orders::ASSEMBLY,
        "lockedTraits: [warmth]\nmembers:\n- persona: p\n  gatherInput: \n    params: {b: 1, a: 2}\n    strategy: s\n  id: a\nschema: s\nmetadata:\n  b: 1\n  a: 1\naudit:\n  overlays:\n    maxActive: 1\n    enabled: true\n",
        "schema: s\nmembers:\n  - id: a\n    persona: p\n    gatherInput:\n      strategy: s\n      params: {b: 1, a: 2}\nlockedTraits: [warmth]\naudit:\n  overlays:\n    enabled: true\n    maxActive: 1\nmetadata:\n  b: 1\n  a: 1\n",
    );
}

#[test]
fn the_other_sorts() {
    formats(
        &orders::PERSONA,
        "tags: []\nboundaries:\n  redirects:\n    - to: x\n      topic: t\nname: n\n",
        "name: n\nboundaries:\n  redirects:\n    - topic: t\n      to: x\ntags: []\n",
    );
    formats(
        &orders::PLAYBOOK,
        "targets:\n  - ref: r\n    kind: role\nschema: s\n",
        "schema: s\ntargets:\n  - kind: role\n    ref: r\n",
    );
    formats(
        &orders::RUNTIME,
        "substrate:\n  path: p\n  kind: file\nid: i\nkind: k\n",
        "kind: k\nid: i\nsubstrate:\n  path: p\n  kind: file\n",
    );
    formats(&orders::OPERATOR, "locks: []\nx: 1\nid: i\n", "id: i\nlocks: []\nx: 1\n");
    formats(
        &orders::COUNCIL,
        "logging:\n  log_path: l\nwatch:\n  paths: []\ntier_rules:\n  tier_2:\n    b: []\n    a: []\n  tier_1:\nruntime:\n  model: m\n  type: t\n  binary: b\n",
        "runtime:\n  type: t\n  model: m\n  binary: b\ntier_rules:\n  tier_1:\n  tier_2:\n    b: []\n    a: []\nwatch:\n  paths: []\nlogging:\n  log_path: l\n",
    );
}
