//! Markdown to prose: which bytes are the author's own words, and where blocks, links and code stand. Front matter,
//! code, block quotes, footnote texts, URLs and the tags of HTML and MDX are not prose.

use std::borrow::Cow;
use std::ops::Range;

use quorate_diagnostics::word_list::WordList;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::{BlockKind, html, mdx};

const WORDS: &str = include_str!("../words/parse.txt");

pub(super) use super::mdx::CODE_FILL;

const OPEN_CODE: &str = "a code block that does not end";
const MDX_CODE: &str = "code of MDX";

/// Sections whose text is a list of sources, not a claim.
const SOURCE_SECTIONS: &[&str] =
    &["references", "sources", "notes", "footnotes", "bibliography", "further reading"];

/// What the parser found.
#[derive(Debug, Default)]
pub(super) struct Extraction {
    pub(super) prose: String,
    pub(super) blocks: Vec<(BlockKind, Range<usize>)>,
    /// Hard line breaks, which end a sentence.
    pub(super) breaks: Vec<usize>,
    /// Places where a source is linked or a footnote is referred to.
    pub(super) source_marks: Vec<usize>,
    /// Links of any kind.
    pub(super) links: Vec<usize>,
    /// What is said beside the prose: markup with its comments, footnote texts, images' texts, sections of sources.
    pub(super) non_prose: Vec<Range<usize>>,
    pub(super) front_matter: Vec<(String, String)>,
    /// Parts that are not read although they may hold prose, each with what it is.
    pub(super) unread: Vec<(Range<usize>, &'static str)>,
}

#[derive(Default)]
struct ProseReader<'t> {
    text: &'t str,
    extraction: Extraction,
    prose_spans: Vec<Range<usize>>,
    code_spans: Vec<Range<usize>>,
    open_block_span: Option<(BlockKind, Range<usize>)>,
    /// Nesting in what is not prose: code, quotations, images, footnote texts, HTML, which is read by [`html`].
    muted: usize,
    items: usize,
    link: Option<(usize, bool)>,
    source_section: bool,
    /// MDX has no code by indentation.
    is_mdx: bool,
    in_indented_prose: bool,
}

/// Parses a Markdown text, or MDX if the text's name ends with `.mdx`.
pub(super) fn parse(name: &str, source: &str) -> Extraction {
    let (body, front_matter) = front_matter(source);
    let is_mdx = name.to_ascii_lowercase().ends_with(".mdx");
    let (text, code) = if is_mdx { mdx::mask(source, body) } else { (Cow::Borrowed(source), Vec::new()) };
    let text = &*text;
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    let mut reader = ProseReader { text, is_mdx, ..ProseReader::default() };
    for (event, span) in Parser::new_ext(&text[body..], options).into_offset_iter() {
        reader.read(event, span.start + body..span.end + body);
    }
    reader.close();
    let mut extraction = reader.extraction;
    extraction.front_matter = front_matter;
    extraction.non_prose.extend(code.iter().cloned());
    extraction.unread.extend(code.into_iter().map(|span| (span, MDX_CODE)));
    extraction.prose = assemble(
        text,
        &reader.prose_spans,
        &mut reader.code_spans,
        &mut extraction.source_marks,
        &mut extraction.links,
    );
    extraction.source_marks.sort_unstable();
    extraction
}

impl ProseReader<'_> {
    fn read(&mut self, event: Event<'_>, span: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, span),
            Event::End(tag) => self.end(tag),
            Event::Text(words) => self.keep_text(&words, span),
            Event::Code(_) | Event::InlineMath(_) | Event::DisplayMath(_) => {
                if self.muted == 0 {
                    self.link = self.link.map(|(_, cites)| (span.start, cites));
                    self.extend_block(&span);
                    self.code_spans.push(span);
                }
            }
            Event::FootnoteReference(_) => self.extraction.source_marks.push(span.start),
            Event::HardBreak => self.extraction.breaks.push(span.start),
            Event::InlineHtml(_) => self.extraction.non_prose.push(span),
            Event::SoftBreak | Event::Rule | Event::Html(_) | Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, span: Range<usize>) {
        match tag {
            Tag::Paragraph if self.items > 0 => self.open_block(BlockKind::Item, span.start),
            Tag::Paragraph => self.open_block(BlockKind::Paragraph, span.start),
            Tag::Heading { .. } => self.open_block(BlockKind::Heading, span.start),
            Tag::TableCell => self.open_block(BlockKind::Cell, span.start),
            Tag::List(_) => self.close(),
            Tag::Item => {
                self.items += 1;
                self.open_block(BlockKind::Item, span.start);
            }
            Tag::CodeBlock(CodeBlockKind::Indented) if self.is_mdx && self.muted == 0 => {
                self.in_indented_prose = true;
                self.open_block(BlockKind::Paragraph, span.start);
            }
            Tag::CodeBlock(kind) => {
                self.close();
                if self.muted == 0
                    && matches!(kind, CodeBlockKind::Fenced(_))
                    && is_open(&self.text[span.clone()])
                {
                    self.extraction.unread.push((span, OPEN_CODE));
                }
                self.muted += 1;
            }
            // An alert (`> [!NOTE]`) is the author speaking.
            Tag::BlockQuote(None) => {
                self.close();
                self.muted += 1;
            }
            Tag::HtmlBlock => {
                self.close();
                if self.muted == 0 && !self.source_section {
                    self.read_html(&span);
                }
                self.extraction.non_prose.push(span);
                self.muted += 1;
            }
            Tag::FootnoteDefinition(_) => {
                self.close();
                self.extraction.non_prose.push(span);
                self.muted += 1;
            }
            Tag::Image { .. } => {
                self.extraction.non_prose.push(span);
                self.muted += 1;
            }
            Tag::Link { link_type, dest_url, .. } => self.start_link(link_type, &dest_url, span),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::TableCell => self.close(),
            TagEnd::Heading(_) => self.end_heading(),
            TagEnd::Item => {
                self.close();
                self.items = self.items.saturating_sub(1);
            }
            TagEnd::CodeBlock if self.in_indented_prose => {
                self.in_indented_prose = false;
                self.close();
            }
            TagEnd::CodeBlock
            | TagEnd::BlockQuote(None)
            | TagEnd::FootnoteDefinition
            | TagEnd::HtmlBlock
            | TagEnd::Image => {
                self.muted = self.muted.saturating_sub(1);
            }
            TagEnd::Link => {
                if let Some((at, true)) = self.link.take() {
                    self.extraction.source_marks.push(at);
                }
            }
            _ => {}
        }
    }

    /// Takes the text between the tags of a block as prose. An element is a block of its own only in tables.
    fn read_html(&mut self, span: &Range<usize>) {
        let html = html::read(&self.text[span.clone()]);
        let place = |part: Range<usize>| span.start + part.start..span.start + part.end;
        let kind = if html.is_table { BlockKind::Cell } else { BlockKind::Paragraph };
        for part in html.texts.into_iter().map(place) {
            let fresh = self.open_block_span.get_or_insert((kind, part.clone()));
            fresh.1.end = part.end;
            self.prose_spans.push(part);
        }
        self.close();
        self.extraction.breaks.extend(html.breaks.into_iter().map(|at| span.start + at));
        self.extraction.unread.extend(html.open.map(|(at, what)| (span.start + at..span.end, what)));
    }

    fn end_heading(&mut self) {
        if let Some((_, span)) = &self.open_block_span {
            let title = self.text[span.clone()].trim().to_ascii_lowercase();
            self.source_section = SOURCE_SECTIONS.contains(&title.as_str());
        }
        self.close();
    }

    fn start_link(&mut self, kind: LinkType, dest: &str, span: Range<usize>) {
        self.extraction.links.push(span.start);
        if matches!(kind, LinkType::Autolink | LinkType::Email) {
            self.code_spans.push(span.clone());
        }
        let elsewhere = !dest.starts_with('#') && !dest.starts_with("mailto:") && kind != LinkType::Email;
        // Which link asks for something ("Try it") and which cites is seen at its first word.
        self.link = Some((span.start, elsewhere));
    }

    fn keep_text(&mut self, words: &CowStr<'_>, span: Range<usize>) {
        if let Some((at, cites)) = &mut self.link {
            *at = span.start;
            let asks = first_word(words).is_some_and(|word| REQUEST_WORDS.contains(&word));
            *cites &= !asks;
        }
        if self.muted == 0 && self.source_section && !self.in_heading() {
            self.extraction.non_prose.push(span.clone());
        }
        // A decoded entity has no letters of its own in the source.
        if self.muted > 0 || self.source_section && !self.in_heading() || self.text[span.clone()] != **words {
            return;
        }
        self.extend_block(&span);
        self.prose_spans.push(span);
    }

    fn in_heading(&self) -> bool {
        matches!(self.open_block_span, Some((BlockKind::Heading, _)))
    }

    fn open_block(&mut self, kind: BlockKind, at: usize) {
        self.close();
        self.open_block_span = Some((kind, at..at));
    }

    /// Makes the open block span what was read.
    fn extend_block(&mut self, span: &Range<usize>) {
        let fresh = self.open_block_span.get_or_insert((BlockKind::Paragraph, span.start..span.start));
        if fresh.1.is_empty() {
            fresh.1.start = span.start;
        }
        fresh.1.end = fresh.1.end.max(span.end);
    }

    fn close(&mut self) {
        if let Some(block) = self.open_block_span.take().filter(|(_, span)| !span.is_empty()) {
            self.extraction.blocks.push(block);
        }
    }
}

/// Whether a fenced block of code has text and no closing line.
fn is_open(block: &str) -> bool {
    let mut lines = block.trim_end().lines().map(|line| line.trim_start_matches(['>', ' ', '\t']).trim_end());
    let Some(opening) = lines.next() else { return false };
    let Some(mark) = opening.chars().next() else { return false };
    let fence: String = opening.chars().take_while(|c| *c == mark).collect();
    let Some(last) = lines.next_back() else { return false };
    let is_closing = last.starts_with(&fence) && last.chars().all(|c| c == mark);
    !is_closing && lines.chain([last]).any(|line| line.contains(char::is_alphanumeric))
}

/// First words of links that ask for something and prove nothing.
static REQUEST_WORDS: WordList = WordList::new(WORDS, "request words");

fn first_word(words: &str) -> Option<String> {
    words.split(|c: char| !c.is_alphabetic()).find(|word| !word.is_empty()).map(str::to_lowercase)
}

/// The prose, as long as the text: what was kept, with bare URLs and code filled.
fn assemble(
    text: &str,
    kept: &[Range<usize>],
    fills: &mut Vec<Range<usize>>,
    marks: &mut Vec<usize>,
    links: &mut Vec<usize>,
) -> String {
    for span in kept {
        let mut from = span.start;
        while let Some(found) = text[from..span.end].find("http").map(|at| from + at) {
            from = found + 4;
            if ["s://", "://"].iter().any(|rest| text[from..].starts_with(rest)) {
                let tail = text[found..].find(|c: char| c.is_whitespace() || "<>\"|)".contains(c));
                let end = tail.map_or(text.len(), |length| found + length);
                let end = found + text[found..end].trim_end_matches(['.', ',', ';', ':', '!', '?']).len();
                fills.push(found..end);
                marks.push(found);
                links.push(found);
                from = end.min(span.end).max(from.min(span.end));
            }
        }
    }
    let mut bytes = vec![b' '; text.len()];
    for span in kept {
        bytes[span.clone()].copy_from_slice(&text.as_bytes()[span.clone()]);
    }
    for span in fills.iter() {
        bytes[span.clone()].fill(CODE_FILL as u8);
    }
    // Every span ends on a character, so this cannot fail; a blank text would only hide findings, never misplace one.
    String::from_utf8(bytes).unwrap_or_else(|_| " ".repeat(text.len()))
}

/// Where the body starts, and the scalar keys of the front matter.
fn front_matter(text: &str) -> (usize, Vec<(String, String)>) {
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut at = start;
    let mut keys = Vec::new();
    for (number, line) in text[start..].split_inclusive('\n').enumerate() {
        at += line.len();
        let bare = line.trim_end();
        match number {
            0 if bare == "---" => {}
            0 => return (start, Vec::new()),
            _ if bare == "---" || bare == "..." => return (at, keys),
            _ => keys.extend(line.split_once(':').map(|(key, value)| {
                (key.trim().to_ascii_lowercase(), value.trim().trim_matches(['"', '\'']).to_ascii_lowercase())
            })),
        }
    }
    (start, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prose_is_as_long_as_the_text() {
        for text in [
            "",
            "\u{feff}",
            "a **b** `c`\r\n",
            "~~é~~ &amp; <b>x</b> https://a.example/b_c.",
            "---\nx: y\n---\nz",
        ] {
            assert_eq!(parse("draft.md", text).prose.len(), text.len(), "{text:?}");
        }
    }

    #[test]
    fn front_matter_without_an_end_is_prose() {
        assert_eq!(front_matter("---\na: b\n").0, 0);
        assert_eq!(front_matter("---\nType: 'Post'\n---\nx"), (21, vec![("type".into(), "post".into())]));
    }

    #[test]
    fn a_link_that_asks_is_no_source() {
        assert_eq!(parse("", "[Try it](https://x.example)").source_marks.len(), 0);
        assert_eq!(parse("", "[our report](https://x.example)").source_marks.len(), 1);
        assert_eq!(parse("", "[below](#later)").source_marks.len(), 0);
        assert_eq!(parse("", "See https://x.example/a_b for more.").source_marks.len(), 1);
    }

    #[test]
    fn the_list_of_sources_makes_no_claims() {
        let parsed = parse("", "Text.\n\n## Sources\n\n1. A study of 40% of us.\n\n## After\n\nMore.\n");
        assert!(!parsed.prose.contains("study") && parsed.prose.contains("More"));
    }
}
