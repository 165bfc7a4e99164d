//! The prompt sections of a persona's frontmatter: one function each, in Markdown. They are also the blocks that a playbook
//! can replace (B9), by their ids.

use quorate_manifest::persona::Persona;
use quorate_manifest::persona::boundaries::Redirect;
use quorate_manifest::persona::voice::EmojiUsage;

/// A section of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// By which it is replaced: `voice`, `boundaries`, `backstory`, `sign-off`.
    pub id: &'static str,
    /// Its Markdown, from its heading to its last character.
    pub text: String,
}

/// The sections of a persona, in the order of the prompt (Q3). What is absent gives none.
pub fn sections(persona: &Persona) -> Vec<Section> {
    [voice(persona), boundaries(persona), backstory(persona), sign_off(persona)]
        .into_iter()
        .flatten()
        .collect()
}

/// How it speaks; but not its sign-off, which is a section of its own.
pub fn voice(persona: &Persona) -> Option<Section> {
    let voice = persona.voice.as_ref()?;
    let emoji = voice.emoji_usage.map(|usage| match usage {
        EmojiUsage::Never => "never",
        EmojiUsage::Sparing => "now and then",
        EmojiUsage::Frequent => "often",
    });
    let blocks = [
        lines([
            labelled("Register", voice.register.as_deref()),
            labelled("Tone", joined(voice.tonality.as_deref()).as_deref()),
            labelled("Formality", voice.formality.map(|grade| format!("{grade} of 10")).as_deref()),
            labelled("Emoji", emoji),
        ]),
        bullets("Phrases that you like to use:", voice.signature_phrases.as_deref()),
    ];
    section("voice", "Voice", blocks)
}

/// What it does not do.
pub fn boundaries(persona: &Persona) -> Option<Section> {
    let boundaries = persona.boundaries.as_ref()?;
    let redirects: Vec<String> = boundaries.redirects.iter().flatten().map(redirect).collect();
    let blocks = [
        bullets("You refuse:", boundaries.refuses.as_deref()),
        bullets("You leave to specialists:", boundaries.defers.as_deref()),
        bullets("You hand on:", Some(&redirects)),
    ];
    section("boundaries", "Boundaries", blocks)
}

/// Where it comes from.
pub fn backstory(persona: &Persona) -> Option<Section> {
    let backstory = persona.backstory.as_ref()?;
    let blocks = [
        backstory.one_line_hook.as_deref().map(one_line).filter(|hook| !hook.is_empty()),
        lines([
            labelled("Archetypes", joined(backstory.archetypes.as_deref()).as_deref()),
            labelled("Era", backstory.era.as_deref()),
            labelled("Setting", backstory.setting.as_deref()),
        ]),
        backstory.background.as_deref().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()),
    ];
    section("backstory", "Backstory", blocks)
}

/// How it closes a message.
pub fn sign_off(persona: &Persona) -> Option<Section> {
    let sign_off = one_line(persona.voice.as_ref()?.sign_off.as_deref()?);
    let closing = (!sign_off.is_empty()).then(|| format!("Close a message with: {sign_off}"));
    section("sign-off", "Sign-off", [closing])
}

fn section<const N: usize>(id: &'static str, heading: &str, blocks: [Option<String>; N]) -> Option<Section> {
    let blocks: Vec<String> = blocks.into_iter().flatten().collect();
    (!blocks.is_empty()).then(|| Section { id, text: format!("## {heading}\n\n{}", blocks.join("\n\n")) })
}

/// The lines that there are, as one list.
fn lines<const N: usize>(lines: [Option<String>; N]) -> Option<String> {
    let lines: Vec<String> = lines.into_iter().flatten().collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn labelled(label: &str, value: Option<&str>) -> Option<String> {
    let value = one_line(value?);
    (!value.is_empty()).then(|| format!("- {label}: {value}"))
}

fn joined(items: Option<&[String]>) -> Option<String> {
    Some(items?.iter().map(|item| one_line(item)).collect::<Vec<_>>().join(", "))
}

fn bullets(lead: &str, items: Option<&[String]>) -> Option<String> {
    let items: Vec<String> =
        items?.iter().map(|item| one_line(item)).filter(|item| !item.is_empty()).collect();
    (!items.is_empty()).then(|| format!("{lead}\n\n- {}", items.join("\n- ")))
}

fn redirect(redirect: &Redirect) -> String {
    let notes = redirect.notes.as_deref().map(one_line).filter(|notes| !notes.is_empty());
    let notes = notes.map_or(String::new(), |notes| format!(". {notes}"));
    format!("{} to {}{notes}", redirect.topic, redirect.to)
}

/// A value on one line: a line break would end its list item.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
