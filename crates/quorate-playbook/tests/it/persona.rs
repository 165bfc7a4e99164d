//! Personas as prompts, from manifests to texts (Q3).

use quorate_manifest::capabilities::NoCapabilities;
use quorate_manifest::loader::{Loader, OpenResult, Options};
use quorate_manifest::persona::{ResolvedPersona, load_persona};
use quorate_manifest::workspace::{Memory, WorkspacePath};
use quorate_playbook::persona::{BasePrompt, json};
use serde_json::json;

const HEAD: &str =
    "schema: persona/v1\nname: ada\ntitle: Ada\ndescription: Tries things out.\nversion: 1.0.0\n";

fn prompt(persona: &ResolvedPersona) -> String {
    BasePrompt::from_persona(persona).render()
}

fn resolved(frontmatter: &str, body: &str) -> ResolvedPersona {
    let parent = format!("---\n{HEAD}boundaries:\n  refuses: [flattery]\n---\n# Parent\n");
    let text = format!("---\n{HEAD}{frontmatter}---\n{body}");
    let files =
        Memory::new().with("personas/ada/PERSONA.md", text).with("personas/parent/PERSONA.md", parent);
    let round = Loader::new(&files, &NoCapabilities, Options::default());
    let OpenResult::Document(layer) =
        round.open(&WorkspacePath::new("personas/ada/PERSONA.md").expect("a path"))
    else {
        panic!("no layer")
    };
    let loaded = load_persona(&round, &layer);
    let refusals: Vec<&str> =
        loaded.report.refusals.iter().map(|refusal| refusal.body.message.as_str()).collect();
    loaded.value.unwrap_or_else(|| panic!("refused: {refusals:?}"))
}

const FULL: &str = r#"voice:
  register: terse
  tonality: [dry, rigorous]
  formality: 6
  emojiUsage: never
  signaturePhrases: ["Show me.", "Two
    lines."]
  signOff: "—Ada"
boundaries:
  refuses: [hype-language]
  defers: [pricing-questions]
  redirects:
    - topic: emergencies
      to: ws://operators/handoff
      notes: |
        At once.
        No exceptions.
    - topic: taxes
      to: ws://operators/tax
backstory:
  oneLineHook: Knows every street.
  background: |
    Has mapped for years.

    Distrusts speed.
  archetypes: [mentor, craftsman]
  era: contemporary
  setting: real-world
"#;

#[test]
fn the_body_then_the_sections_in_their_order() {
    // Q3
    let persona = resolved(FULL, "\n# Ada\n\nYou try things out.\n\n");
    let expected = "\
# Ada

You try things out.

## Voice

- Register: terse
- Tone: dry, rigorous
- Formality: 6 of 10
- Emoji: never

Phrases that you like to use:

- Show me.
- Two lines.

## Boundaries

You refuse:

- hype-language

You leave to specialists:

- pricing-questions

You hand on:

- emergencies to ws://operators/handoff. At once. No exceptions.
- taxes to ws://operators/tax

## Backstory

Knows every street.

- Archetypes: mentor, craftsman
- Era: contemporary
- Setting: real-world

Has mapped for years.

Distrusts speed.

## Sign-off

Close a message with: —Ada";
    assert_eq!(prompt(&persona), expected);
    let base = BasePrompt::from_persona(&persona);
    assert_eq!(base.blocks().collect::<Vec<_>>(), ["voice", "boundaries", "backstory", "sign-off"]);
}

#[test]
fn nothing_stands_for_what_is_absent() {
    let check = |frontmatter: &str, body: &str, expected: &str| {
        assert_eq!(prompt(&resolved(frontmatter, body)), expected, "{frontmatter}");
    };
    check("", "You are Ada.\n", "You are Ada.");
    check("", "", "");
    check("voice:\nboundaries: {}\nbackstory:\n  archetypes: []\n", "Ada.", "Ada.");
    check("voice:\n  signOff: —A\n", "Ada.", "Ada.\n\n## Sign-off\n\nClose a message with: —A");
    check("boundaries:\n  defers: [taxes]\n", "", "## Boundaries\n\nYou leave to specialists:\n\n- taxes");
    check("voice:\n  register: \"  \"\n  tonality: []\n", "Ada.", "Ada.");
}

#[test]
fn inherited_values_are_reported_too() {
    let persona = resolved("extends: ../parent/PERSONA.md\nboundaries:\n  refuses: [hype]\n", "");
    assert_eq!(prompt(&persona), "# Parent\n\n## Boundaries\n\nYou refuse:\n\n- flattery\n- hype");
    let json = json(&persona);
    assert_eq!(json["boundaries"], json!({"refuses": ["flattery", "hype"]}));
    assert_eq!(json["name"], "ada");
    assert_eq!(json["body"], "# Parent\n");
}
