//! A persona as agents and executors read it (Q3): for agents the body of its manifest and the sections of its frontmatter;
//! for executors JSON.
//! Also the base of a prompt: a text with blocks that a playbook can replace (B9).

use std::collections::BTreeMap;

use quorate_manifest::persona::{EmojiUsage, Persona, Redirect, ResolvedPersona};
use serde_json::Value;

/// The key of the body beside the frontmatter's keys.
const BODY: &str = "body";

/// A persona for executors that read it without a model: the merged frontmatter, and its body as `body`.
pub fn json(persona: &ResolvedPersona) -> Value {
    let mut json = persona.chain.merged.to_json();
    if let Some(object) = json.as_object_mut() {
        object.insert(BODY.to_owned(), Value::from(persona.body.as_str()));
    }
    json
}

/// How it speaks; but not its sign-off, which is a section of its own.
fn voice(persona: &Persona) -> Option<Segment> {
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

/// The limits of the persona.
fn boundaries(persona: &Persona) -> Option<Segment> {
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
fn backstory(persona: &Persona) -> Option<Segment> {
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
fn sign_off(persona: &Persona) -> Option<Segment> {
    let sign_off = one_line(persona.voice.as_ref()?.sign_off.as_deref()?);
    let closing = (!sign_off.is_empty()).then(|| format!("Close a message with: {sign_off}"));
    section("sign-off", "Sign-off", [closing])
}

fn section<const N: usize>(id: &str, heading: &str, blocks: [Option<String>; N]) -> Option<Segment> {
    let blocks: Vec<String> = blocks.into_iter().flatten().collect();
    let text = format!("## {heading}\n\n{}", blocks.join("\n\n"));
    (!blocks.is_empty()).then(|| Segment { block: Some(id.to_owned()), text })
}

/// The lines that are present, as one list.
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

const COMMENT_START: &str = "<!--";
const COMMENT_END: &str = "-->";

/// A prompt in parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BasePrompt {
    parts: Vec<Segment>,
}

/// A piece of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    /// By which it is replaced.
    block: Option<String>,
    text: String,
}

impl BasePrompt {
    /// A persona (Q3): its body, then voice, boundaries, backstory and sign-off as its frontmatter gives them, each behind
    /// a blank line. The rendered prompt neither starts nor ends with a blank line.
    pub fn from_persona(ResolvedPersona { body, persona, .. }: &ResolvedPersona) -> Self {
        let sections = [voice(persona), boundaries(persona), backstory(persona), sign_off(persona)];
        sections.into_iter().flatten().fold(BasePrompt::from_body(body.trim()), |base, section| {
            base.join(BasePrompt { parts: vec![section] })
        })
    }

    /// The body of a manifest, with the blocks that are marked in it.
    pub fn from_body(text: &str) -> Self {
        let mut segments = Vec::new();
        let plain = |text: &str| (!text.is_empty()).then(|| Segment { block: None, text: text.to_owned() });
        let (mut rest, mut from) = (text, 0);
        while let Some(opening) = next_comment(rest, from) {
            let Some(id) = opening.content.strip_prefix("block:").map(str::trim).filter(|id| !id.is_empty())
            else {
                from = opening.end;
                continue;
            };
            let Some(closing) = find_closing(rest, opening.end) else { break };
            segments.extend(plain(&rest[..opening.start]));
            let text = rest[opening.end..closing.start].to_owned();
            segments.push(Segment { block: Some(id.to_owned()), text });
            (rest, from) = (&rest[closing.end..], 0);
        }
        segments.extend(plain(rest));
        BasePrompt { parts: segments }
    }

    /// A text without blocks; markers are plain text.
    pub fn from_plain_text(text: &str) -> Self {
        let part = Segment { block: None, text: text.to_owned() };
        BasePrompt { parts: if text.is_empty() { Vec::new() } else { vec![part] } }
    }

    /// This, and another one behind a blank line.
    #[must_use]
    pub fn join(mut self, other: BasePrompt) -> Self {
        if !self.parts.is_empty() && !other.parts.is_empty() {
            self.parts.push(Segment { block: None, text: "\n\n".to_owned() });
        }
        self.parts.extend(other.parts);
        self
    }

    /// The blocks that can be replaced, in the order of the prompt.
    pub fn blocks(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| part.block.as_deref())
    }

    /// Whether there is a block.
    pub fn has_block(&self, block: &str) -> bool {
        self.blocks().any(|known| known == block)
    }

    /// The text of a block.
    pub fn block_text(&self, block: &str) -> Option<&str> {
        self.parts.iter().find(|part| part.block.as_deref() == Some(block)).map(|part| part.text.as_str())
    }

    /// The prompt without playbooks.
    pub fn render(&self) -> String {
        self.render_with(&BTreeMap::new())
    }

    /// The prompt with other texts in place of some blocks. Of blocks with one name the first is replaced.
    pub fn render_with(&self, replaced: &BTreeMap<&str, &str>) -> String {
        let mut remaining = replaced.clone();
        let mut prompt = String::new();
        for part in &self.parts {
            match part.block.as_deref().and_then(|block| remaining.remove(block)) {
                Some(text) => {
                    prompt.push_str(text);
                    // The text after begins on its own line if it did before.
                    let ends = &part.text[part.text.trim_end_matches(['\n', '\r']).len()..];
                    prompt.push_str(ends);
                }
                None => prompt.push_str(&part.text),
            }
        }
        prompt
    }
}

/// A comment in a text.
struct HtmlComment<'t> {
    start: usize,
    end: usize,
    content: &'t str,
}

/// The first comment from a place on. One that has its line for itself ends with the line.
fn next_comment(text: &str, from: usize) -> Option<HtmlComment<'_>> {
    let start = from + text.get(from..)?.find(COMMENT_START)?;
    let inner = start + COMMENT_START.len();
    let length = text[inner..].find(COMMENT_END)?;
    let mut end = inner + length + COMMENT_END.len();
    let own_line = start == 0 || text[..start].ends_with('\n');
    if own_line {
        let rest = &text[end..];
        end += rest
            .strip_prefix("\r\n")
            .or(rest.strip_prefix('\n'))
            .map_or(0, |behind| rest.len() - behind.len());
    }
    Some(HtmlComment { start, end, content: text[inner..inner + length].trim() })
}

/// The end of a block that was begun.
fn find_closing(text: &str, mut from: usize) -> Option<HtmlComment<'_>> {
    loop {
        let one = next_comment(text, from)?;
        if one.content == "/block" {
            return Some(one);
        }
        from = one.end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str) -> Vec<String> {
        BasePrompt::from_body(text).blocks().map(str::to_owned).collect()
    }

    #[test]
    fn marks_are_no_part_of_a_prompt() {
        // B9
        let text = "Hello.\n<!-- block: tone -->\nBe calm.\n<!-- /block -->\nBye.";
        assert_eq!(blocks(text), ["tone"]);
        assert_eq!(BasePrompt::from_body(text).render(), "Hello.\nBe calm.\nBye.");
        let replaced = BTreeMap::from([("tone", "Be quick."), ("other", "no")]);
        assert_eq!(BasePrompt::from_body(text).render_with(&replaced), "Hello.\nBe quick.\nBye.");
        let inline = "Be <!--block:tone-->calm<!--/block-->, please.";
        assert_eq!(BasePrompt::from_body(inline).render_with(&replaced), "Be Be quick., please.");
        assert_eq!(BasePrompt::from_body(inline).render(), "Be calm, please.");
    }

    #[test]
    fn what_is_no_block_is_text() {
        for text in [
            "",
            "plain",
            "<!-- a comment -->",
            "<!-- block: open --> for ever",
            "a <!-- /block -->",
            "<!-- block: -->x<!-- /block -->",
            "<!--",
        ] {
            assert_eq!(
                (blocks(text).len(), BasePrompt::from_body(text).render()),
                (0, text.to_owned()),
                "{text}"
            );
        }
        // A comment, or an opening, within a block is its text.
        let nested = "<!-- block: a -->1<!-- block: b -->2<!-- /block -->3<!-- block: c -->4<!-- /block -->";
        assert_eq!(blocks(nested), ["a", "c"]);
        assert_eq!(BasePrompt::from_body(nested).render(), "1<!-- block: b -->234");
    }

    #[test]
    fn of_two_blocks_with_one_name_the_first_is_replaced() {
        let text = "<!-- block: a -->1<!-- /block --> <!-- block: a -->2<!-- /block -->";
        assert_eq!(BasePrompt::from_body(text).render_with(&BTreeMap::from([("a", "x")])), "x 2");
    }
}
