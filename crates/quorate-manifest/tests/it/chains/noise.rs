//! Texts that resemble manifests: the check of any file ends and does not panic.

use proptest::prelude::*;
use quorate_manifest::check::{self, Discovery};
use quorate_manifest::loader::{Loader, Options};
use quorate_manifest::workspace::{Memory, WorkspacePath};

use crate::chains::capabilities::AllCapabilities;
use crate::chains::config;

const KEYS: &str = "schema name title description version extends appliesTo mode members id persona role weight parent \
    synthesis rules riskLevels range params lockedTraits matchMode audit overlays enabled defaultTtl metadata targets \
    selector history at participants ttl slug kind evidence status lock_check substrate executor";

const VALUES: &str = "assembly.workspace/v1 persona/v1 playbooks/v1 agentruntimes/v1 ../ASSEMBLY.md ../a/ASSEMBLY.md \
    ../../../x/ASSEMBLY.md ../a/PERSONA.md ws://personas/x ws://personas/../x ws://operators/a peer regex semantic \
    hierarchy 1.0.0 0.5 -1 0x1F 2.50 true yes ~ P14D 2026-04-21 \"\\0\" \"*\" ü {a:1} {} [a,[b]] \
    [ } *a &a !!str @ ` 1e400 99999999999999999999 .inf ' \" | >- # --- ? - : <<: % \t \u{202e}";

/// Valid manifests by file name.
const MANIFESTS: [(&str, &str); 5] = [
    (
        "a/ASSEMBLY.md",
        "schema: assembly.workspace/v1\nname: aa\ntitle: A\ndescription: A\nversion: 1.0.0\nextends: ../ASSEMBLY.md\n\
         mode: voting\nmembers: [{id: m1, persona: ws://personas/m1, role: r, weight: 0.5}, {id: m2, persona: \
         ws://personas/m2, role: r, parent: m1}]\nsynthesis: {rules: [{id: r1, kind: quorum, appliesTo: [m1], params: \
         {threshold: 0.5}}], riskLevels: [{range: [0, 4], label: ok}]}\nlockedTraits: [a, b]\nmatchMode: regex\naudit: \
         {overlays: {defaultTtl: P1D}, signing: none}\nexecutor: ws://operators/a\ngovernance: ./p.md\n",
    ),
    (
        "a/PERSONA.md",
        "schema: persona/v1\nname: aa\ntitle: A\ndescription: A\nversion: 1.0.0\nextends: ../a/PERSONA.md\nvoice: \
         {tonality: [dry], formality: 3}\nrelationships: [{persona: ws://personas/b, kind: k}]\nidentity: ws://identities/b\n",
    ),
    (
        "playbooks/a.md",
        "schema: playbooks/v1\nslug: aa\ntitle: A\ntargets: [{kind: operator, ref: role/a}]\nkind: overlay\n\
         lock_check: [aa]\nttl: P1M\nevidence: [{kind: run, ref: r}]\nstatus: active\nupdated_at: \"2026-04-21T09:00:00Z\"\n",
    ),
    (
        "swarm.yaml",
        "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: s\nparticipants: [{id: a, executor: inline, role: \
         a.md}, {id: b, executor: x}]\nsubstrate: {kind: file}\ndispatcher: {kind: mention}\neffectors: \
         [{participantId: a, tools: []}]\n",
    ),
    ("operators/a/OPERATOR.md", "id: a\nname: A\nrole: role/a\npersona: ws://personas/a\nskills: [s]\n"),
];

/// Characters with and without a meaning in YAML.
const CHANGES: [char; 12] = ['{', ']', ':', '\n', '"', '\0', ' ', '9', 'x', '-', '#', '\u{feff}'];

/// Random choices; when they are used up, the first choice.
struct Choices(std::vec::IntoIter<u16>);

impl Choices {
    fn below(&mut self, count: usize) -> usize {
        usize::from(self.0.next().unwrap_or_default()) % count
    }

    fn word(&mut self, of: &'static str) -> &'static str {
        let count = of.split(' ').filter(|word| !word.is_empty()).count();
        let at = self.below(count);
        of.split(' ').filter(|word| !word.is_empty()).nth(at).unwrap_or_default()
    }
}

/// A file's name and text.
fn file(choices: Vec<u16>) -> (&'static str, String) {
    let mut choices = Choices(choices.into_iter());
    let (name, manifest) = MANIFESTS[choices.below(MANIFESTS.len())];
    // An optional valid manifest, lines of keys and values below it, and a few changed characters.
    let mut text = if choices.below(3) > 0 { manifest.to_owned() } else { String::new() };
    for _ in 0..choices.below(8).saturating_sub(if text.is_empty() { 0 } else { 5 }) {
        let (indent, dash) = ("  ".repeat(choices.below(3)), ["", "", "- "][choices.below(3)]);
        text.push_str(&format!("{indent}{dash}{}: {}\n", choices.word(KEYS), choices.word(VALUES)));
    }
    let mut text: Vec<char> = text.chars().collect();
    for _ in 0..choices.below(3) {
        if !text.is_empty() {
            let at = choices.below(text.len());
            text[at] = CHANGES[choices.below(CHANGES.len())];
        }
    }
    let text: String = text.into_iter().collect();
    let (open, close) =
        [("---\n", "---\n"), ("\u{feff}---\r\n", "---"), ("---\n", "---\n# Text\n"), ("", "")]
            [choices.below(4)];
    (name, if name.ends_with(".yaml") { text } else { format!("{open}{text}{close}") })
}

proptest! {
    #![proptest_config(config(10_000))]

    #[test]
    fn nothing_panics_on_text_that_is_nearly_yaml(choices in prop::collection::vec(any::<u16>(), 0..48)) {
        let (name, text) = file(choices);
        let memory = Memory::new().with(name, text);
        let loader = Loader::new(&memory, &AllCapabilities, Options::default());
        let location = WorkspacePath::new(name).expect("a path in the workspace");
        let _ = check::check(&loader, &location, Discovery::Explicit);
    }
}
