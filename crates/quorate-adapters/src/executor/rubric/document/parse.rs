//! Markdown to prose: which bytes are the author's own words, and where blocks, links and code stand. Front matter,
//! code, block quotes, footnote texts, URLs and the tags of HTML and MDX are not prose.
//!
//! HTML contributes the text between its tags. In MDX, imports and exports, expressions in braces with their comments, and
//! the tags of components are code; the text between tags is Markdown.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};
use quorate_diagnostics::text::WordList;

use super::BlockKind;

const PARSE_WORDS: &str = include_str!("../words/parse.txt");

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
    let (text, code) = if is_mdx { mask(source, body) } else { (Cow::Borrowed(source), Vec::new()) };
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
        let html = read_html(&self.text[span.clone()]);
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
static REQUEST_WORDS: WordList = WordList::new(PARSE_WORDS, "request words");

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
    // The end of the last URL, which may reach over several spans: none of them is searched again for it.
    let mut filled = 0;
    for span in kept {
        let mut from = span.start.max(filled).min(span.end);
        while let Some(found) = text[from..span.end].find("http").map(|at| from + at) {
            from = found + 4;
            if ["s://", "://"].iter().any(|rest| text[from..].starts_with(rest)) {
                let tail = text[found..].find(|c: char| c.is_whitespace() || "<>\"|)".contains(c));
                let end = tail.map_or(text.len(), |length| found + length);
                let end = found + text[found..end].trim_end_matches(['.', ',', ';', ':', '!', '?']).len();
                fills.push(found..end);
                marks.push(found);
                links.push(found);
                filled = end;
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

/// Elements whose text is not the author's prose.
const NOT_PROSE: &[&str] = &["blockquote", "code", "pre", "script", "style", "svg", "textarea"];
/// Elements that do not end a sentence.
const INLINE: &[&str] =
    &["a", "abbr", "b", "em", "i", "mark", "s", "small", "span", "strong", "sub", "sup", "u"];

/// The places are those of the block.
#[derive(Debug, Default)]
pub(super) struct HtmlBlock {
    pub(super) texts: Vec<Range<usize>>,
    /// Tags that end a sentence.
    pub(super) breaks: Vec<usize>,
    pub(super) is_table: bool,
    /// Where something begins that the block does not end, and what it is.
    pub(super) open: Option<(usize, &'static str)>,
}

pub(super) fn read_html(block: &str) -> HtmlBlock {
    let mut html = HtmlBlock::default();
    let folded = block.to_ascii_lowercase();
    let mut at = 0;
    while let Some(rest) = block.get(at..).filter(|rest| !rest.is_empty()) {
        let length = if let Some(comment) = rest.strip_prefix("<!--") {
            let end = comment.find("-->").map(|end| end + "<!---->".len());
            html.end_or_note(end, at, comment, "a comment that does not end")
        } else if let Some((_, None)) = html_tag(rest) {
            html.end_or_note(None, at, &rest[1..], "HTML that does not end")
        } else if let Some((name, Some(length))) = html_tag(rest) {
            html.is_table |= matches!(&*name, "td" | "th");
            if !INLINE.contains(&&*name) {
                html.breaks.push(at);
            }
            if NOT_PROSE.contains(&&*name) {
                let closing = format!("</{name}");
                let end = folded[at..].find(&closing).map(|end| end + closing.len());
                html.end_or_note(end, at, &rest[length..], "HTML that does not end")
            } else {
                Some(length)
            }
        } else {
            let next = rest.char_indices().skip(1).find(|(_, c)| *c == '<');
            let length = next.map_or(rest.len(), |(next, _)| next);
            if rest[..length].contains(char::is_alphanumeric) {
                html.texts.push(at..at + length);
            }
            Some(length)
        };
        let Some(length) = length else { break };
        at += length;
    }
    html
}

impl HtmlBlock {
    /// Passes the end on. Notes what has none, if there is text in it.
    fn end_or_note(
        &mut self,
        end: Option<usize>,
        at: usize,
        inside: &str,
        what: &'static str,
    ) -> Option<usize> {
        if end.is_none() && inside.contains(char::is_alphanumeric) {
            self.open = Some((at, what));
        }
        end
    }
}

/// The name of the tag that a text begins with, in lower case and without a slash, and the tag's length if it ends.
fn html_tag(rest: &str) -> Option<(String, Option<usize>)> {
    let inner = rest.strip_prefix('<')?;
    let inner = inner.strip_prefix('/').unwrap_or(inner);
    if !inner.starts_with(|c: char| c.is_ascii_alphabetic() || c == '!' || c == '?') {
        return None;
    }
    let name: String = inner.chars().take_while(char::is_ascii_alphanumeric).collect();
    let mut quote = None;
    let end = rest.char_indices().find(|(_, c)| {
        match (quote, *c) {
            (Some(mark), c) if c == mark => quote = None,
            (None, '"' | '\'') => quote = Some(*c),
            (None, '>') => return true,
            _ => {}
        }
        false
    });
    Some((name.to_ascii_lowercase(), end.map(|(at, _)| at + 1)))
}

/// Stands in the prose for every byte of code and of bare URLs: a word that no check looks for.
pub(super) const CODE_FILL: char = '\u{1}';

/// The text with its code blanked out, of the same length in bytes, and where the code was. `body` is where the front
/// matter ends. Code that does not end stays in the text.
pub(super) fn mask(text: &str, body: usize) -> (Cow<'_, str>, Vec<Range<usize>>) {
    let spans = MdxScan { text, at: body, spans: Vec::new(), open_brace: false, open_tag: false }.run();
    if spans.is_empty() {
        return (Cow::Borrowed(text), spans);
    }
    let mut bytes = text.as_bytes().to_vec();
    for span in &spans {
        // Before text on the same line it is filled, since blanks would indent the text.
        let (before, after) = (&text.as_bytes()[..span.start], &text.as_bytes()[span.end..]);
        let begins = before.iter().rev().take_while(|byte| **byte != b'\n').all(u8::is_ascii_whitespace);
        let ends = after.iter().take_while(|byte| **byte != b'\n').all(u8::is_ascii_whitespace);
        let fill = if begins && !ends { CODE_FILL } else { ' ' };
        let code = bytes[span.clone()].iter_mut();
        code.filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = fill as u8);
    }
    // Every span ends on a character, so this cannot fail; the unchanged text would only hide less.
    (String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned), spans)
}

struct MdxScan<'t> {
    text: &'t str,
    at: usize,
    spans: Vec<Range<usize>>,
    /// Whether a brace was found that does not end, so that no further one is looked for.
    open_brace: bool,
    open_tag: bool,
}

impl<'t> MdxScan<'t> {
    fn run(mut self) -> Vec<Range<usize>> {
        let mut fence: Option<&str> = None;
        let mut after_blank = true;
        while self.at < self.text.len() {
            let start = self.at;
            let line = self.line_from(start);
            let bare = line.trim();
            if let Some(mark) = fence {
                if bare.starts_with(mark) && bare.bytes().all(|byte| byte == mark.as_bytes()[0]) {
                    fence = None;
                }
                self.at += line.len();
            } else if bare.starts_with("```") || bare.starts_with("~~~") {
                let count = bare.bytes().take_while(|byte| *byte == bare.as_bytes()[0]).count();
                fence = Some(&bare[..count]);
                self.at += line.len();
            } else if after_blank && ["import ", "export "].iter().any(|word| line.starts_with(word)) {
                self.read_statement();
            } else {
                self.read_line(start + line.len());
            }
            after_blank = bare.is_empty();
        }
        self.spans
    }

    /// A line with its end.
    fn line_from(&self, at: usize) -> &'t str {
        let rest = &self.text[at..];
        rest.find('\n').map_or(rest, |end| &rest[..=end])
    }

    /// Imports and exports end before a blank line.
    fn read_statement(&mut self) {
        let start = self.at;
        let mut end = start;
        while end < self.text.len() && !self.line_from(end).trim().is_empty() {
            end += self.line_from(end).len();
        }
        self.spans.push(start..start + self.text[start..end].trim_end().len());
        self.at = end;
    }

    /// Expressions and tags that begin in a line; they may end in a later one.
    fn read_line(&mut self, end: usize) {
        while self.at < end {
            let rest = &self.text[self.at..];
            let code = match rest.as_bytes() {
                [b'\\', ..] => {
                    self.at += 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                    continue;
                }
                [b'`', ..] => {
                    let marks = rest.bytes().take_while(|byte| *byte == b'`').count();
                    let line = &rest[..end - self.at];
                    let close = line[marks..].find(&line[..marks]).map_or(0, |close| close + marks);
                    self.at += marks + close;
                    continue;
                }
                [b'{', ..] if !self.open_brace => {
                    let length = expression_len(rest);
                    self.open_brace = length.is_none();
                    length
                }
                [b'<', ..] if !self.open_tag && begins_tag(rest) => {
                    let length = tag_len(rest);
                    self.open_tag = length.is_none();
                    length
                }
                _ => None,
            };
            match code {
                Some(length) => {
                    self.spans.push(self.at..self.at + length);
                    self.at += length;
                }
                None => self.at += rest.chars().next().map_or(1, char::len_utf8),
            }
        }
    }
}

/// The length of an expression in braces.
fn expression_len(rest: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut in_comment = false;
    for (at, c) in rest.char_indices() {
        match (quote, c) {
            _ if in_comment => in_comment = !(c == '/' && rest[..at].ends_with('*')),
            (Some(mark), c) if c == mark => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '*') if rest[..at].ends_with('/') => in_comment = true,
            (None, '{') => depth += 1,
            (None, '}') => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether a tag of a component or element begins here: `<Box`, `</Box>`, `<>`.
fn begins_tag(rest: &str) -> bool {
    let inner = rest[1..].strip_prefix('/').unwrap_or(&rest[1..]);
    let name = inner.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte)).count();
    let is_name = inner.starts_with(|c: char| c.is_ascii_alphabetic());
    let after = inner.as_bytes().get(name).copied().unwrap_or(b'\n');
    (is_name || name == 0 && after == b'>') && (after.is_ascii_whitespace() || matches!(after, b'/' | b'>'))
}

/// The length of a tag, whose attributes may have strings and expressions.
fn tag_len(rest: &str) -> Option<usize> {
    let mut at = 1;
    while let Some(c) = rest[at..].chars().next() {
        at += match c {
            '>' => return Some(at + 1),
            '"' | '\'' => rest[at + 1..].find(c)? + 2,
            '{' => expression_len(&rest[at..])?,
            c => c.len_utf8(),
        };
    }
    None
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
    fn text_in_html_may_begin_with_any_character() {
        for words in ["é too", "“so”", "\u{200b}so", "中", "🎉 so", "<3 é", "é"] {
            let html = format!("<div>{words}</div>");
            let parsed = parse("draft.md", &html);
            assert_eq!(parsed.prose.trim(), words, "{html}");
        }
    }

    #[test]
    fn a_url_of_many_spans_is_read_once() {
        for piece in ["http://&amp;", "http://a&amp;", "https://*a*", "http://\\_"] {
            let text = piece.repeat(1_000);
            let parsed = parse("draft.md", &text);
            assert_eq!((parsed.links.len(), parsed.source_marks.len()), (1, 1), "{piece}");
            assert_eq!(parsed.prose.trim_matches(CODE_FILL).trim(), "", "{piece}");
        }
        assert_eq!(parse("draft.md", "http://a&amp;b http://c&amp;d\nhttp://e").links.len(), 3);
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

#[cfg(test)]
mod mdx_tests {
    use super::*;

    fn masked(text: &str) -> String {
        let (clean, _) = mask(text, 0);
        assert_eq!(clean.len(), text.len());
        clean.replace(CODE_FILL, "")
    }

    #[test]
    fn code_is_taken_out_and_text_stays() {
        for (text, left) in [
            ("import Box from './box'\nexport const x = {a: '}'}\n\nText.\n", "\n\n\nText.\n"),
            ("A {/* note } */}word.\n", "A word.\n"),
            ("{/* note */}Word.\n", "Word.\n"),
            ("<Box kind=\"a > b\" on={() => {}}>\n  Word.\n</Box>\n", "\n  Word.\n\n"),
            ("<>é</>\n", "é\n"),
            ("`{a}` and \\{b} and ``<C>``\n", "`{a}` and \\{b} and ``<C>``\n"),
            ("```js\nlet a = {\n```\n\nText {x}.\n", "```js\nlet a = {\n```\n\nText .\n"),
            ("It is <5 and {open\n", "It is <5 and {open\n"),
            ("The import rules hold.\nexport rules too.\n", "The import rules hold.\nexport rules too.\n"),
        ] {
            let clean = masked(text);
            assert!(clean.split_whitespace().eq(left.split_whitespace()), "{text:?}: {clean:?}");
        }
    }
}
