//! A text as prose: its blocks and sentences, with their byte offsets in the source.
//!
//! [`Document::prose`] is as long as the text. Only the author's own words stay in it: front matter, code, block quotes,
//! footnote texts, link targets, comments and tags are blanked out, and inline code, URLs and words between quotation marks
//! are filled with a character that no check looks for. `sources.rs` decides which sentences name a source.

mod sources;

use std::ops::Range;
use std::sync::LazyLock;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};
use quorate_diagnostics::text::one_line;
use regex::{Match, Regex};

use super::phrases::{compiled, words};
pub(super) use sources::Channel;

/// The longest quote, in characters.
const QUOTE_CAP: usize = 160;
/// Stands in the prose for every byte of inline code, URLs and quoted speech.
const FILL: char = '\u{1}';

/// The Markdown element that a run of prose comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    Paragraph,
    /// A list item, or a paragraph in one.
    Item,
    Heading,
    Cell,
}

/// A run of prose that no sentence crosses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) kind: BlockKind,
    /// Byte range in the source.
    pub(super) span: Range<usize>,
    /// Indices into [`Document::sentences`].
    pub(super) sentences: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentence {
    /// Byte range in the source, from its first to its last character.
    pub(super) span: Range<usize>,
    /// Index into [`Document::blocks`].
    pub(super) block: usize,
    /// The number of its words, without code and quoted speech.
    pub(super) words: usize,
    /// Whether the sentence itself names or links a source.
    pub(super) cites: bool,
}

#[derive(Debug)]
pub(super) struct Document<'t> {
    pub(super) text: &'t str,
    pub(super) prose: String,
    pub(super) blocks: Vec<Block>,
    /// Of all blocks, in order.
    pub(super) sentences: Vec<Sentence>,
    /// Comments, tags, images and footnotes.
    pub(super) markup: Vec<Range<usize>>,
    /// The purpose of the text, as far as it can be detected.
    pub(super) channel: Channel,
    /// Whether the text offers the reader a link.
    pub(super) has_link: bool,
    /// Whether character references spell letters.
    pub(super) spells_letters: bool,
    /// Parts that are not read although they may hold the author's prose, each with what it is.
    pub(super) unread: Vec<(Range<usize>, &'static str)>,
    line_starts: Vec<usize>,
}

impl<'t> Document<'t> {
    /// Parses a text; `name` is its path, a hint for the channel.
    pub(super) fn parse(name: &str, text: &'t str) -> Self {
        let is_mdx = name.to_ascii_lowercase().ends_with(".mdx");
        let (body, front_matter) = front_matter(text);
        let code = if is_mdx { mdx_code(text, body) } else { Vec::new() };
        let mut visible = text.as_bytes().to_vec();
        code.iter().for_each(|span| blank(&mut visible[span.clone()], b' '));
        let visible = into_text(visible);
        let mut reader = Reader { text: &visible, is_mdx, ..Reader::default() };
        let options = Options::ENABLE_TABLES
            | Options::ENABLE_FOOTNOTES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS
            | Options::ENABLE_GFM;
        for (event, span) in Parser::new_ext(&visible[body..], options).into_offset_iter() {
            reader.read(event, span.start + body..span.end + body);
        }
        reader.close();
        let mut prose = vec![b' '; text.len()];
        for span in &reader.kept {
            prose[span.clone()].copy_from_slice(&visible.as_bytes()[span.clone()]);
        }
        for url in URL.find_iter(&into_text(prose.clone())) {
            reader.has_link = true;
            reader.marks.push(url.start());
            let end = url.start() + url.as_str().trim_end_matches(['.', ',', ';', ':', '!', '?']).len();
            reader.fills.push(url.start()..end);
        }
        reader.fills.iter().for_each(|span| prose[span.clone()].fill(FILL as u8));
        reader.markup.extend(code.iter().cloned());
        reader.unread.extend(code.into_iter().map(|span| (span, "code of MDX")));
        let mut document = Document {
            text,
            prose: into_text(prose),
            blocks: Vec::new(),
            sentences: Vec::new(),
            markup: reader.markup,
            channel: Channel::Unstated,
            has_link: reader.has_link,
            spells_letters: reader.spells_letters,
            unread: reader.unread,
            line_starts: std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect(),
        };
        document.fill_quoted_speech(&reader.blocks);
        for (kind, span) in reader.blocks {
            document.add_block(kind, span, &reader.breaks);
        }
        sources::mark_citations(&mut document, &reader.marks);
        document.channel = sources::detect_channel(name, &document, &front_matter);
        document
    }

    /// Words between quotation marks are not the author's. Their punctuation stays, since it may end a sentence.
    fn fill_quoted_speech(&mut self, blocks: &[(BlockKind, Range<usize>)]) {
        let mut bytes = self.prose.as_bytes().to_vec();
        for (_, span) in blocks {
            for quoted in QUOTED.find_iter(&self.prose[span.clone()]) {
                let start = span.start + quoted.start();
                // An inch mark follows its number.
                if self.prose[span.start..start].ends_with(char::is_alphanumeric) {
                    continue;
                }
                let letters = quoted.as_str().char_indices().map(|(at, c)| (start + at, c));
                for (at, c) in letters.filter(|(_, c)| c.is_alphanumeric() || *c == '’') {
                    bytes[at..at + c.len_utf8()].fill(FILL as u8);
                }
            }
        }
        self.prose = into_text(bytes);
    }

    fn add_block(&mut self, kind: BlockKind, span: Range<usize>, breaks: &[usize]) {
        let first = self.sentences.len();
        let spans = match kind {
            BlockKind::Heading | BlockKind::Cell => vec![span.clone()],
            _ => split_sentences(&self.prose, span.clone(), breaks),
        };
        for sentence in spans {
            let sentence = trimmed(&self.prose, sentence);
            let words = words(&self.prose[sentence.clone()]).count();
            if words > 0 {
                self.sentences.push(Sentence {
                    span: sentence,
                    block: self.blocks.len(),
                    words,
                    cites: false,
                });
            }
        }
        self.blocks.push(Block { kind, span, sentences: first..self.sentences.len() });
    }

    /// The text of a place on one line, for use within a sentence.
    pub(super) fn one_line(&self, span: &Range<usize>) -> String {
        one_line(&self.text[span.clone()])
    }

    /// The prose of a sentence.
    pub(super) fn prose_of(&self, sentence: &Sentence) -> &str {
        &self.prose[sentence.span.clone()]
    }

    /// The kind of a sentence's block.
    pub(super) fn kind_of(&self, sentence: &Sentence) -> BlockKind {
        self.blocks[sentence.block].kind
    }

    /// The sentence that a place belongs to: the last one that starts at or before it.
    pub(super) fn sentence_at(&self, at: usize) -> Option<usize> {
        self.sentences.partition_point(|sentence| sentence.span.start <= at).checked_sub(1)
    }

    /// The sentence before another one in the same block, or after it.
    pub(super) fn neighbour(&self, index: usize, forward: bool) -> Option<&Sentence> {
        let at = if forward { index + 1 } else { index.checked_sub(1)? };
        self.sentences.get(at).filter(|other| other.block == self.sentences[index].block)
    }

    /// The number of words of prose, without code and quoted speech.
    pub(super) fn word_count(&self) -> usize {
        self.sentences.iter().map(|sentence| sentence.words).sum()
    }

    /// The line number of a place, from 1.
    pub(super) fn line_of(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at)
    }

    /// The text of a line, from 1, without its line end; empty past the last.
    pub(super) fn line(&self, number: usize) -> Range<usize> {
        let Some(start) = number.checked_sub(1).and_then(|index| self.line_starts.get(index)).copied() else {
            return self.text.len()..self.text.len();
        };
        start..self.line_starts.get(number).map_or(self.text.len(), |next| next - 1)
    }

    /// A place with at most `before` and `after` words of its sentence around it, within its line.
    pub(super) fn widened(&self, span: &Range<usize>, before: usize, after: usize) -> Range<usize> {
        let line = self.line(self.line_of(span.start));
        let bounds = self.sentence_at(span.start).map_or(span.clone(), |at| self.sentences[at].span.clone());
        let (from, to) =
            (line.start.max(bounds.start).min(span.start), line.end.min(bounds.end).max(span.end));
        // Only as much as so many long words may take: a line may be as long as the text.
        let near = self.prose.ceil_char_boundary(from.max(span.start.saturating_sub(before * 24)));
        let start = words(&self.prose[near..span.start]).map(|(at, _)| near + at).collect::<Vec<_>>();
        let start = start.len().checked_sub(before).or(Some(0)).and_then(|at| start.get(at)).copied();
        let end =
            words(&self.prose[span.end..to]).take(after).last().map(|(at, word)| span.end + at + word.len());
        start.unwrap_or(span.start)..end.unwrap_or(span.end)
    }

    /// A quote for a place: verbatim, on one line, short.
    pub(super) fn quote(&self, span: &Range<usize>) -> Range<usize> {
        let first = self.line_of(span.start);
        let part = |number: usize| {
            let line = self.line(number);
            trimmed(
                self.text,
                line.start.max(span.start)..line.end.min(span.end).max(line.start.max(span.start)),
            )
        };
        // The first words of a sentence may stand alone at the end of a line.
        let (here, next) = (part(first), first + 1);
        let is_short = here.len() < 12 && self.line(next).start < span.end;
        let mut quote = if is_short && part(next).len() > here.len() { part(next) } else { here };
        if let Some((cut, _)) = self.text[quote.clone()].char_indices().nth(QUOTE_CAP) {
            let cut = quote.start + cut;
            let space = self.text[quote.start..cut].rfind(char::is_whitespace).map(|at| quote.start + at);
            quote = trimmed(self.text, quote.start..space.unwrap_or(cut));
        }
        quote
    }
}

static URL: LazyLock<Regex> = LazyLock::new(|| compiled(r#"https?://[^\s<>"|)]+"#));
static QUOTED: LazyLock<Regex> = LazyLock::new(|| compiled(r#""[^"]*"|“[^”]*”|„[^”“]*[”“]|«[^»]*»"#));

/// Every span that is filled or blanked out begins and ends at a character, so that this cannot fail; a blank text
/// would only hide findings.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| " ".repeat(error.as_bytes().len()))
}

fn blank(bytes: &mut [u8], fill: u8) {
    bytes.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = fill);
}

fn trimmed(text: &str, span: Range<usize>) -> Range<usize> {
    let inner = &text[span.clone()];
    let start = span.start + (inner.len() - inner.trim_start().len());
    start..start + inner.trim().len()
}

/// Abbreviations that are followed by more of the same sentence.
const NON_FINAL: &[&str] = &[
    "e.g", "i.e", "vs", "mr", "mrs", "ms", "dr", "prof", "st", "fig", "figs", "approx", "cf", "ca", "al",
    "vol", "pp", "jan", "feb", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "incl",
    "resp", "avg", "rev", "est",
];
/// Abbreviations that may also end one: the next word decides by its capital.
const AMBIGUOUS: &[&str] = &["etc", "inc", "ltd", "co", "corp", "a.m", "p.m", "u.s", "u.k", "e.u"];

static SENTENCE_END: LazyLock<Regex> = LazyLock::new(|| compiled(r#"[.!?…]+["'”’)\]*_»\x01]*(?:\s+|\z)"#));

/// The sentences of a block. A hard line break ends one.
fn split_sentences(prose: &str, span: Range<usize>, breaks: &[usize]) -> Vec<Range<usize>> {
    let block = &prose[span.clone()];
    let marks = SENTENCE_END
        .find_iter(block)
        .filter(|mark| ends_sentence(block, mark))
        .map(|mark| span.start + mark.end());
    let hard = breaks[breaks.partition_point(|at| *at <= span.start)..].iter().copied();
    let mut ends: Vec<usize> = marks.chain(hard.take_while(|at| *at < span.end)).collect();
    ends.push(span.end);
    ends.sort_unstable();
    let mut start = span.start;
    ends.into_iter().map(|end| std::mem::replace(&mut start, end)..end).collect()
}

fn ends_sentence(block: &str, mark: &Match<'_>) -> bool {
    let next = block[mark.end()..].chars().next();
    if next.is_some_and(char::is_lowercase) {
        return false;
    }
    if !mark.as_str().trim_end().eq(".") {
        return true;
    }
    // An abbreviation is short.
    let before = &block[..mark.start()];
    let before = before.char_indices().rev().take(6).last().map_or("", |(at, _)| &before[at..]);
    let word = before.rsplit(|c: char| c.is_whitespace() || "([\"“".contains(c)).next().unwrap_or_default();
    let folded = word.to_ascii_lowercase();
    match &*folded {
        word if AMBIGUOUS.contains(&word) => next.is_none_or(|c| c.is_uppercase() || c == FILL),
        // “No.” and “p.” abbreviate before a number only.
        "no" | "nos" | "p" | "sec" | "min" | "max" | "ch" | "mar" => {
            !next.is_some_and(|c| c.is_ascii_digit())
        }
        word if NON_FINAL.contains(&word) => next.is_none(),
        _ => next.is_none() || !(word.len() == 1 && word.starts_with(char::is_uppercase) && word != "I"),
    }
}

/// Where the body starts, and the scalar keys of the front matter.
fn front_matter(text: &str) -> (usize, Vec<(String, String)>) {
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let (mut at, mut keys) = (start, Vec::new());
    for (number, line) in text[start..].split_inclusive('\n').enumerate() {
        at += line.len();
        match line.trim_end() {
            "---" if number == 0 => {}
            _ if number == 0 => break,
            "---" | "..." => return (at, keys),
            _ => keys.extend(line.split_once(':').map(|(key, value)| {
                (key.trim().to_ascii_lowercase(), value.trim().trim_matches(['"', '\'']).to_ascii_lowercase())
            })),
        }
    }
    (start, Vec::new())
}

/// What MDX adds to Markdown outside of code: imports and exports, expressions in braces, and tags of components. Their
/// text is Markdown.
fn mdx_code(text: &str, body: usize) -> Vec<Range<usize>> {
    let found = MDX.find_iter(&text[body..]).map(|code| body + code.start()..body + code.end());
    found
        .map(|span| trimmed(text, span))
        .filter(|span| !text[span.clone()].starts_with(['`', '~', '\\']))
        .collect()
}

static MDX: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?s)(?:\A|\n)(?:```.*?\n```|~~~.*?\n~~~)|`[^`\n]+`|\\[{<]",
        r"|(?:\A\s*|\n[ \t]*\n)(?:import|export) (?:[^\n]*['{=][^\n]*)(?:\n[^\n]*\S[^\n]*)*",
        r"|\{/\*.*?\*/\}|\{[^{}\n]*\}|</?[A-Z][\w.]*(?:\s[^<>]*)?/?>|</?>",
    ))
});

/// Sections whose text is a list of sources, not a claim.
const SOURCE_SECTIONS: &[&str] =
    &["references", "sources", "notes", "footnotes", "bibliography", "further reading"];
/// First words of links that ask for something and prove nothing.
const REQUESTS: &str = "try sign join download get start buy book subscribe install order contact register";

#[derive(Default)]
struct Reader<'t> {
    text: &'t str,
    /// MDX has no code by indentation.
    is_mdx: bool,
    kept: Vec<Range<usize>>,
    fills: Vec<Range<usize>>,
    blocks: Vec<(BlockKind, Range<usize>)>,
    /// Hard line breaks, which end a sentence.
    breaks: Vec<usize>,
    /// Places where a source is linked or a footnote is referred to.
    marks: Vec<usize>,
    markup: Vec<Range<usize>>,
    unread: Vec<(Range<usize>, &'static str)>,
    has_link: bool,
    spells_letters: bool,
    open: Option<(BlockKind, Range<usize>)>,
    /// Nesting in what is not prose.
    muted: usize,
    items: usize,
    /// The open link: whether it may be a source, and the place of its text.
    link: Option<(bool, usize)>,
    source_section: bool,
}

impl Reader<'_> {
    fn read(&mut self, event: Event<'_>, span: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, span),
            Event::End(tag) => self.end(tag),
            Event::Text(words) => self.keep_text(&words, span),
            Event::Code(_) | Event::InlineMath(_) | Event::DisplayMath(_) if self.muted == 0 => {
                self.extend_block(&span);
                self.fills.push(span);
            }
            Event::FootnoteReference(_) => self.marks.push(span.start),
            Event::HardBreak => self.breaks.push(span.start),
            Event::InlineHtml(_) => self.markup.push(span),
            _ => {}
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
                self.open_block(BlockKind::Paragraph, span.start);
            }
            Tag::CodeBlock(kind) => {
                self.close();
                let fenced = matches!(kind, CodeBlockKind::Fenced(_));
                if self.muted == 0 && fenced && is_open(&self.text[span.clone()]) {
                    self.unread.push((span, "a code block that does not end"));
                }
                self.muted += 1;
            }
            // An alert (`> [!NOTE]`) is the author speaking.
            Tag::BlockQuote(None) => {
                self.close();
                self.muted += 1;
            }
            Tag::HtmlBlock | Tag::FootnoteDefinition(_) | Tag::Image { .. } => {
                if !matches!(tag, Tag::Image { .. }) {
                    self.close();
                }
                if matches!(tag, Tag::HtmlBlock) && self.muted == 0 && !self.source_section {
                    self.read_html(&span);
                }
                self.markup.push(span);
                self.muted += 1;
            }
            Tag::Link { link_type, dest_url, .. } => {
                self.has_link = true;
                if matches!(link_type, LinkType::Autolink | LinkType::Email) {
                    self.fills.push(span.clone());
                }
                let elsewhere = !dest_url.starts_with('#') && !dest_url.starts_with("mailto:");
                self.link = Some((elsewhere && link_type != LinkType::Email, span.start));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::TableCell => self.close(),
            TagEnd::Heading(_) => {
                let title = self.open.as_ref().map_or("", |(_, span)| self.text[span.clone()].trim());
                self.source_section = SOURCE_SECTIONS.contains(&title.to_ascii_lowercase().as_str());
                self.close();
            }
            TagEnd::Item => {
                self.close();
                self.items = self.items.saturating_sub(1);
            }
            // Code by indentation in MDX was read as a paragraph.
            TagEnd::CodeBlock if self.muted == 0 => self.close(),
            TagEnd::CodeBlock
            | TagEnd::BlockQuote(None)
            | TagEnd::FootnoteDefinition
            | TagEnd::HtmlBlock
            | TagEnd::Image => self.muted = self.muted.saturating_sub(1),
            TagEnd::Link => self.marks.extend(self.link.take().filter(|(cites, _)| *cites).map(|(_, at)| at)),
            _ => {}
        }
    }

    fn keep_text(&mut self, written: &CowStr<'_>, span: Range<usize>) {
        if let Some((cites, at)) = &mut self.link {
            *at = span.start;
            let first = words(written).next().map_or("", |(_, word)| word);
            *cites &= REQUESTS.split(' ').all(|request| !first.eq_ignore_ascii_case(request));
        }
        if self.muted > 0 {
            return;
        }
        let heading = matches!(self.open, Some((BlockKind::Heading, _)));
        if self.source_section && !heading {
            self.markup.push(span);
        } else if self.text[span.clone()] == **written {
            self.extend_block(&span);
            self.kept.push(span);
        } else {
            // A decoded character reference has no letters of its own in the source.
            let letters = written.chars().all(|c| c.is_ascii_alphabetic());
            self.spells_letters |= letters && self.text[span].starts_with("&#");
        }
    }

    /// Takes the text between the tags of a block as prose. A tag of a block ends a block.
    fn read_html(&mut self, span: &Range<usize>) {
        let text = self.text;
        let block = &text[span.clone()];
        let (mut from, mut kind) = (0, BlockKind::Paragraph);
        for markup in HTML.find_iter(block) {
            self.keep_html(span.start + from..span.start + markup.start(), kind);
            let tag = markup.as_str();
            let ended = tag.ends_with(if tag.starts_with("<!--") { "-->" } else { ">" });
            if !ended && tag[1..].contains(char::is_alphanumeric) {
                let is_comment = tag.starts_with("<!--");
                let what = if is_comment { "a comment that does not end" } else { "HTML that does not end" };
                self.unread.push((span.start + markup.start()..span.end, what));
            }
            if !INLINE_TAG.is_match(tag) {
                self.close();
                let start = tag.get(..3).unwrap_or_default().to_ascii_lowercase();
                kind = if matches!(&*start, "<td" | "<th") { BlockKind::Cell } else { BlockKind::Paragraph };
            }
            from = markup.end();
        }
        self.keep_html(span.start + from..span.end, kind);
        self.close();
    }

    fn keep_html(&mut self, part: Range<usize>, kind: BlockKind) {
        if self.text[part.clone()].contains(char::is_alphanumeric) {
            self.open.get_or_insert((kind, part.start..part.start));
            self.extend_block(&part);
            self.kept.push(part);
        }
    }

    fn open_block(&mut self, kind: BlockKind, at: usize) {
        self.close();
        self.open = Some((kind, at..at));
    }

    /// Makes the open block span what was read.
    fn extend_block(&mut self, span: &Range<usize>) {
        let (_, block) = self.open.get_or_insert((BlockKind::Paragraph, span.start..span.start));
        if block.start == block.end {
            block.start = span.start;
        }
        block.end = block.end.max(span.end);
    }

    fn close(&mut self) {
        self.blocks.extend(self.open.take().filter(|(_, span)| span.start < span.end));
    }
}

/// Comments, elements whose text is not the author's prose, and tags. What does not end extends to the end.
static HTML: LazyLock<Regex> = LazyLock::new(|| {
    let elements = ["blockquote", "code", "pre", "script", "style", "svg", "textarea"];
    let elements = elements.map(|name| format!(r"<{name}\b.*?(?:</{name}\s*>|\z)"));
    compiled(&format!(r"(?is)<!--.*?(?:-->|\z)|{}|</?[a-z!?][^<>]*(?:>|\z)", elements.join("|")))
});
static INLINE_TAG: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?i)\A</?(?:a|abbr|b|em|i|mark|s|small|span|strong|sub|sup|u)\b"));

/// Whether a fenced block of code has text and no closing line.
fn is_open(block: &str) -> bool {
    let mut lines = block.trim_end().lines().map(|line| line.trim_start_matches(['>', ' ', '\t']).trim_end());
    let opening = lines.next().unwrap_or_default();
    let mark = opening.chars().next().unwrap_or('`');
    let fence: String = opening.chars().take_while(|c| *c == mark).collect();
    let Some(last) = lines.next_back() else { return false };
    let is_closing = last.starts_with(&fence) && last.chars().all(|c| c == mark);
    !is_closing && lines.chain([last]).any(|line| line.contains(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(text: &str) -> Vec<&str> {
        Document::parse("", text).sentences.iter().map(|s| &text[s.span.clone()]).collect()
    }

    #[test]
    fn only_the_authors_own_words_are_prose() {
        let text = "---\ntype: post\n---\n# Title\n\nOne [two](http://x.example/y) `three` “four”.\n\n> quoted\n\n```sh\n\
                    code\n```\n<!-- note -->\n\n| a | b |\n|---|---|\n| c | d |\n\n<div>e <b>f</b><pre>g</pre></div>\n\n\
                    ## Sources\n\nh\n";
        let document = Document::parse("", text);
        assert_eq!(document.prose.len(), text.len());
        let words: Vec<&str> = words(&document.prose).map(|(_, word)| word).collect();
        assert_eq!(words, ["Title", "One", "two", "a", "b", "c", "d", "e", "f", "Sources"]);
    }

    #[test]
    fn sentences_end_where_a_reader_stops() {
        for (text, expected) in [
            (
                "Ask Dr. Jones, e.g. about J. R. Smith. It took 3.5 s. Fine.",
                "Ask Dr. Jones, e.g. about J. R. Smith.|It took 3.5 s.|Fine.",
            ),
            (
                "Logs, traces, etc. were kept. At 5 p.m. We left.",
                "Logs, traces, etc. were kept.|At 5 p.m.|We left.",
            ),
            ("See No. 5. Say no. Then go.", "See No. 5.|Say no.|Then go."),
            ("Well... maybe. Wait… What?! “Yes.” No. End", "Well... maybe.|Wait…|What?!|No.|End"),
            ("Lead:\n\n- one\n- two\n  - three\n\n  more\n", "Lead:|one|two|three|more"),
            ("one two  \nthree four", "one two|three four"),
        ] {
            assert_eq!(sentences(text).join("|"), expected, "{text}");
        }
    }

    #[test]
    fn code_of_mdx_is_named_and_the_text_in_components_is_read() {
        let text = "import Box from './box'\nexport const x = 'always'\n\n{/* a */}One.\n\n<Box label=\"everyone\">\n    We two.\n</Box>\n\nTwo {b} end, `{c}`.\n";
        let document = Document::parse("x.mdx", text);
        let words: Vec<&str> = words(&document.prose).map(|(_, word)| word).collect();
        assert_eq!(words, ["One", "We", "two", "Two", "end"]);
        assert_eq!(document.unread.len(), 5, "{:?}", document.unread);
        assert!(Document::parse("x.md", text).unread.is_empty());
    }

    #[test]
    fn what_does_not_end_is_named() {
        for (text, what) in [
            ("A.\n\n```sh\nlamp\n\nAlways free.\n", "a code block that does not end"),
            ("- a\n\n  ```\n  lamp\n\nText.\n", "a code block that does not end"),
            ("A.\n\n<!-- note\n\nAlways free.\n", "a comment that does not end"),
            ("<pre>\nlamp\n\nAlways free.\n", "HTML that does not end"),
            ("<div title=\"\nAlways free.\n", "HTML that does not end"),
        ] {
            let unread: Vec<&str> =
                Document::parse("x.md", text).unread.into_iter().map(|(_, what)| what).collect();
            assert_eq!(unread, [what], "{text:?}");
        }
        for text in [
            "A.\n\n```sh\nlamp\n```\n",
            "```\n",
            "<!-- note -->\n",
            "<pre>\nx\n</pre>\n",
            "> ```\n> x\n",
            "`a\n\nb",
        ] {
            assert!(Document::parse("x.md", text).unread.is_empty(), "{text:?}");
        }
    }

    #[test]
    fn quotes_stay_on_one_line_and_are_cut_at_a_word() {
        let text = "so\nfast and so good\n\n".to_owned() + &"word ".repeat(100);
        let document = Document::parse("", &text);
        assert_eq!(&text[document.quote(&(0..19))], "fast and so good");
        let quote = document.quote(&(21..text.len()));
        assert!(quote.len() <= QUOTE_CAP && text[quote].ends_with("word"));
        assert_eq!(&text[document.widened(&(7..8), 1, 2)], "fast and so");
    }
}
