//! The base of a prompt: the text of a persona or an operator, with blocks that a playbook can replace (B9).
//!
//! Blocks are the sections from a persona's frontmatter, and text between `<!-- block: id -->` and `<!-- /block -->` in a
//! body. The markers are not part of the prompt. A marker without its counterpart is plain text.

use std::collections::BTreeMap;

use quorate_manifest::persona::load::Resolved;

use crate::persona::sections;

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
    /// A persona (Q3): its body, then the sections that its frontmatter gives, each behind a blank line.
    pub fn from_persona(persona: &Resolved) -> Self {
        let mut base = BasePrompt::from_body(persona.body.trim());
        for section in sections(&persona.persona) {
            base = base.join(BasePrompt {
                parts: vec![Segment { block: Some(section.id.to_owned()), text: section.text }],
            });
        }
        base
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
