//! Messages for common mistakes.

use super::*;
use crate::doctype::Doctype;
use crate::doctype::compiled_schema;
use crate::tree::yaml;

const ASSEMBLY: &str = "schema: assembly.workspace/v1\nname: board\ntitle: Board\ndescription: It decides.\nversion: 1.0.0\nmode: voting\n";
const PERSONA: &str = "schema: persona/v1\nname: ciso\ntitle: CISO\ndescription: Careful.\nversion: 1.0.0\n";
const PLAYBOOK: &str = "schema: playbooks/v1\nslug: quote-it\ntitle: Quote it\nkind: overlay\nlock_check: []\nstatus: shadow\ntargets: [{kind: operator, ref: alice}]\nevidence: [{kind: run, ref: r1}]\n";
const RUNTIME: &str = "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: swarm\nparticipants: [{id: a, executor: inline}]\nsubstrate: {kind: file}\ndispatcher: {kind: mention}\n";

/// The messages for a manifest with some top-level keys replaced; a null key is removed.
fn messages(doctype: Doctype, base: &str, other: &str) -> String {
    let keys: Vec<&str> = other.lines().filter_map(|line| line.split_once(':')).map(|(key, _)| key).collect();
    let kept = base.lines().filter(|line| !keys.contains(&line.split(':').next().unwrap_or_default()));
    let text = format!("{}\n{other}\n", kept.collect::<Vec<_>>().join("\n"));
    let (root, problems) = yaml::parse(&text);
    assert!(problems.is_empty(), "{problems:?}\n{text}");
    let root = root.expect("a tree");
    let misfits = compiled_schema(doctype).expect("a schema").errors(&root);
    let one = |misfit: &SchemaError| {
        let (body, ..) = describe(&text, &root, misfit, "");
        match body.help {
            Some(help) => format!("{}; {help}", body.message),
            None => body.message,
        }
    };
    misfits.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// Checks the messages for each manifest.
#[track_caller]
fn assert_messages(doctype: Doctype, base: &str, slips: &[(&str, &[&str])]) {
    for (other, wanted) in slips {
        assert_eq!(messages(doctype, base, other).lines().collect::<Vec<_>>(), *wanted, "{other}");
    }
}

#[test]
fn slips_in_an_assembly() {
    // M2.
    let slips: &[(&str, &[&str])] = &[
        ("title: 0", &["`title` is 0; it has to be text; put it in quotes: \"0\""]),
        ("title: ~", &["`title` is missing; add `title`: the display name"]),
        ("version: 1.0", &["`version` is 1.0; it has to be a version like 1.0.0; did you mean `1.0.0`?"]),
        (
            "version: v1.0.0",
            &["`version` is `v1.0.0`; it has to be a version like 1.0.0; did you mean `1.0.0`?"],
        ),
        (
            "name: Release Board",
            &[
                "`name` is `Release Board`; it has to be lower-case letters, digits and dashes, beginning with a letter and not ending with a dash; did you mean `release-board`?",
            ],
        ),
        ("name: a", &["`name` has 1 character; it needs at least 2"]),
        (
            "name: |\n  board",
            &[
                "`name` is `board\\n`; it has to be lower-case letters, digits and dashes, beginning with a letter and not ending with a dash; did you mean `board`?",
            ],
        ),
        (
            "mode: Voting",
            &[
                "`mode` is `Voting`; it has to be one of advisory, voting, peer, hierarchy; did you mean `voting`?",
            ],
        ),
        ("mode: 3", &["`mode` is 3; it has to be one of advisory, voting, peer, hierarchy"]),
        (
            "mode: ~",
            &[
                "`mode` is missing; add `mode`: a manifest without a parent needs a mode: advisory, voting, peer or hierarchy",
            ],
        ),
        ("schema: assembly/v1", &["`schema` is `assembly/v1`; it has to be assembly.workspace/v1"]),
        ("titel: x", &["`titel` is not a key here; did you mean `title`?"]),
        (
            "lockedTraits: warmth, honesty",
            &["`lockedTraits` has to be a list, not text; write [warmth, honesty]"],
        ),
        ("lockedTraits: [warmth, warmth]", &["`lockedTraits` has `warmth` twice; remove entry 2"]),
        ("lockedTraits: [1]", &["`lockedTraits[0]` is 1; it has to be text; put it in quotes: \"1\""]),
        ("members: {ciso: {}}", &["`members` has to be a list, not a mapping; begin each entry with a dash"]),
        (
            "members: [ciso]",
            &["`members[0]` has to be a mapping, not text; write its keys, at least id, persona, role"],
        ),
        (
            "members: [{id: ciso}]",
            &[
                "`persona` is missing in `members[0]`; add `persona`: the member's persona, which has to exist in the same scope",
                "`role` is missing in `members[0]`; add `role`: the display name of the role",
            ],
        ),
        (
            "members: [{id: ciso, persona: ws://operators/x, role: CISO, weight: 0, timeout_ms: 30s, triggers: [daily]}]",
            &[
                "`members[0].persona` is `ws://operators/x`; it has to be ws://personas/<slug>",
                "`members[0].weight` is 0; it has to be more than 0",
                "`members[0].timeout_ms` has to be a whole number, not text; write 30000: it is a number of milliseconds",
                "`members[0].triggers[0]` is `daily`; it has to be one of sample, sentinel-match, scheduled, manual, periodic",
            ],
        ),
        (
            "members: [{id: ciso, persona: ws://personas/x, role: CISO, weight: '2', timeout_ms: 1.5, gatherInput: digest}]",
            &[
                "`members[0].weight` has to be a number, not text; write 2, without quotes",
                "`members[0].timeout_ms` is 1.5; it has to be a whole number",
                "`members[0].gatherInput` has to be a mapping, not text; write {strategy: digest}",
            ],
        ),
        (
            "synthesis: {rules: [{id: r1, kind: quorum, appliesTo: ciso}]}",
            &["`synthesis.rules[0].appliesTo` is `ciso`; it has to be `*` or a list; write [ciso]"],
        ),
        (
            "synthesis: {riskLevels: [{range: [0], label: fine}, {range: [3, 11], label: ok}]}",
            &[
                "`synthesis.riskLevels[0].range` has 1 entry; it needs at least 2",
                "`synthesis.riskLevels[0].label` is `fine`; it has to be one of ok, watch, intervene, escalate",
                "`synthesis.riskLevels[1].range[1]` is 11; it can be at most 10",
            ],
        ),
        (
            "audit: {signing: true, consultations: {enabled: yes, retention: 90d}, overlays: {maxActive: 0, defaultTtl: 14d}}",
            &[
                "`audit.signing` is true; it has to be one of required, optional, none",
                "`audit.consultations.enabled` has to be true or false, not text; write true",
                "`audit.consultations.retention` is `90d`; it has to be forever or days:<n>; did you mean `days:90`?",
                "`audit.overlays.maxActive` is 0; it has to be at least 1",
                "`audit.overlays.defaultTtl` is `14d`; it has to be a duration like P14D or PT12H; did you mean `P14D`?",
            ],
        ),
        (
            "appliesTo: [ws://operators/x]",
            &[
                "`extends` is missing; add `extends`: a manifest that applies to a consumer is a view, and a view extends a parent",
            ],
        ),
        (
            "extends: ./ASSEMBLY.md",
            &[
                "`extends` is `./ASSEMBLY.md`; it has to be the relative path of another ASSEMBLY.md, beginning with ./ or ../",
            ],
        ),
        (
            "extends: ../parent",
            &[
                "`extends` is `../parent`; it has to be the relative path of another ASSEMBLY.md, beginning with ./ or ../; did you mean `../parent/ASSEMBLY.md`?",
            ],
        ),
        (
            "extends: 3",
            &[
                "`extends` is 3; it has to be the relative path of another ASSEMBLY.md, beginning with ./ or ../",
            ],
        ),
        (
            "defaults: {triggerHeuristic: periodic}",
            &[
                "`triggerInterval_ms` is missing in `defaults`; add `triggerInterval_ms`: the heuristic periodic needs an interval",
            ],
        ),
        (
            "identity: simone",
            &[
                "`identity` is `simone`; it has to be ws://identities/<slug>; did you mean `ws://identities/simone`?",
            ],
        ),
        ("description: ''", &["`description` is empty"]),
    ];
    assert_messages(Doctype::Assembly, ASSEMBLY, slips);
}

#[test]
fn slips_in_a_persona() {
    // M2.
    let slips: &[(&str, &[&str])] = &[
        (
            "defaultLocale: en_US",
            &[
                "`defaultLocale` is `en_US`; it has to be a language tag like en or fr-FR; did you mean `en-US`?",
            ],
        ),
        (
            "voice: {formality: 11, emojiUsage: often, tonality: []}",
            &[
                "`voice.formality` is 11; it can be at most 10",
                "`voice.emojiUsage` is `often`; it has to be one of never, sparing, frequent",
            ],
        ),
        (
            "relationships: [{persona: marcus, kind: peer-of}]",
            &[
                "`relationships[0].persona` is `marcus`; it has to be ws://personas/<slug>; did you mean `ws://personas/marcus`?",
            ],
        ),
        (
            "boundaries: {redirects: [{topic: law, to: lawyer}]}",
            &[
                "`boundaries.redirects[0].to` is `lawyer`; it has to be ws://personas/<slug>, ws://operators/<slug>, ws://skills/<slug> or a relative path",
            ],
        ),
        (
            "extends: ../marcus",
            &[
                "`extends` is `../marcus`; it has to be the relative path of a PERSONA.md in a folder, beginning with ./ or ../; did you mean `../marcus/PERSONA.md`?",
            ],
        ),
    ];
    assert_messages(Doctype::Persona, PERSONA, slips);
}

#[test]
fn slips_in_a_playbook() {
    // M2.
    let slips: &[(&str, &[&str])] = &[
        (
            "targets: ~",
            &[
                "`targets` or `selector` is missing; a playbook says whom it is for, by selector or by targets",
            ],
        ),
        ("selector: {}", &["`selector` is an empty mapping"]),
        (
            "selector: {role: 3}",
            &["`selector.role` is 3; it has to be text or a list; put it in quotes: \"3\""],
        ),
        ("selector: {a b: ''}", &["`selector[\"a b\"]` is empty"]),
        (
            "kind: block-replacement",
            &["`block` is missing; add `block`: a block replacement names the block that it replaces"],
        ),
        ("priority: 200", &["`priority` is 200; it can be at most 100"]),
        (
            "ttl: 30 days",
            &["`ttl` is `30 days`; it has to be a duration like P30D or PT12H; did you mean `P30D`?"],
        ),
        ("created_at: 2026", &["`created_at` is 2026; it has to be text; put it in quotes: \"2026\""]),
    ];
    assert_messages(Doctype::Playbook, PLAYBOOK, slips);
}

#[test]
fn slips_in_a_runtime() {
    // M2.
    let slips: &[(&str, &[&str])] = &[
        ("participants: []", &["`participants` is an empty list"]),
        ("substrate: file", &["`substrate` has to be a mapping, not text; write {kind: file}"]),
        (
            "substrate: {}",
            &["`kind` is missing in `substrate`; add `kind`: the kind of adapter in the registry"],
        ),
        (
            "lifecycle: {onTurnEnd: off, onStart: true}",
            &[
                "`lifecycle.onTurnEnd` has to be true or false, not text; write false",
                "`onStart` is not a key in `lifecycle`; the keys are: onIdle, onMention, onTurnEnd",
            ],
        ),
        (
            "effectors: [{participantId: a, tools: bash}]",
            &["`effectors[0].tools` has to be a list, not text; write [bash]"],
        ),
    ];
    assert_messages(Doctype::Runtime, RUNTIME, slips);
}

#[test]
fn what_cannot_be_seen_is_written_out() {
    assert_eq!(quoted(""), "empty");
    assert_eq!(quoted("a\u{200B}\n\u{A0}é"), r"`a\u{200B}\n\u{A0}é`");
    assert_eq!(quoted(&"x".repeat(61)), format!("`{}…`", "x".repeat(60)));
}
