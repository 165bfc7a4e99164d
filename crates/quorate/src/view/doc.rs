//! A document: what an outcome says, apart from the medium that shows it. Each medium has one writer: text for terminals,
//! Markdown for pull requests, HTML for pages.
//!
//! A document holds foreign text (drafts, answers, names) unchanged. The writers make it harmless: no text can end its
//! element, colour the terminal, mention a person, or hide a character.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use quorate_diagnostics::invisible::escape_invisible_except;
use quorate_diagnostics::render::TextOptions;

use super::layout;
use super::markdown;

pub use super::layout::Tone;

/// Text on one line, in pieces with a tone.
///
/// ```
/// use quorate::view::{Text, Tone};
///
/// let verdict = Text::toned(Tone::Fair, "REVISE").and("  ").and(Text::code("draft.md"));
/// assert_eq!(verdict.plain(), "REVISE  draft.md");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    tone: Tone,
    text: String,
    /// The medium that shows it; `None` is each one.
    medium: Option<Medium>,
}

impl Text {
    /// One piece with a tone.
    pub fn toned(tone: Tone, text: impl Into<String>) -> Text {
        Text(vec![Piece { tone, text: text.into(), medium: None }])
    }

    /// A name, or an outcome's word.
    pub fn strong(text: impl Into<String>) -> Text {
        Text::toned(Tone::Strong, text)
    }

    /// Secondary text.
    pub fn faint(text: impl Into<String>) -> Text {
        Text::toned(Tone::Faint, text)
    }

    /// A path, an id or a command.
    pub fn code(text: impl Into<String>) -> Text {
        Text::toned(Tone::Code, text)
    }

    /// Appends a text.
    #[must_use]
    pub fn and(mut self, text: impl Into<Text>) -> Text {
        self.0.extend(text.into().0);
        self
    }

    /// Shows the text in one medium alone, such as a bar of characters on terminals.
    #[must_use]
    pub fn only(mut self, medium: Medium) -> Text {
        self.0.iter_mut().for_each(|piece| piece.medium = Some(medium));
        self
    }

    /// Whether it has no characters.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|piece| piece.text.is_empty())
    }

    /// Its characters, without tones.
    pub fn plain(&self) -> String {
        self.0.iter().map(|piece| piece.text.as_str()).collect()
    }

    fn shown_in(&self, medium: Medium) -> impl Iterator<Item = (Tone, &str)> {
        let is_shown = move |piece: &&Piece| piece.medium.is_none_or(|only| only == medium);
        self.0.iter().filter(is_shown).map(|piece| (piece.tone, piece.text.as_str()))
    }

    /// The marked text of [`layout`], on one line. White space at the ends of pieces stays.
    fn marked(&self) -> String {
        let piece = |(tone, text): (Tone, &str)| {
            let words = spaced(text, &layout::one_line(text));
            if words.is_empty() { words } else { tone.on(&words) }
        };
        self.shown_in(Medium::Terminal).map(piece).collect()
    }

    fn markdown(&self) -> String {
        let piece = |(tone, text): (Tone, &str)| match tone {
            // A line break would end the line, or the row of a table.
            _ if layout::one_line(text).is_empty() => text.replace(|c| c != ' ', ""),
            Tone::Plain | Tone::Faint => spaced(text, &markdown::inline(text)),
            Tone::Code => spaced(text, &markdown::code(text)),
            _ => spaced(text, &format!("**{}**", markdown::inline(text))),
        };
        self.shown_in(Medium::Markdown).map(piece).collect()
    }

    /// Without bold words: for headings, which are bold already, and for tables.
    fn markdown_plain(&self) -> String {
        let plain = |piece: &Piece| match piece.tone {
            Tone::Code => piece.clone(),
            _ => Piece { tone: Tone::Plain, ..piece.clone() },
        };
        Text(self.0.iter().map(plain).collect()).markdown()
    }

    fn html(&self) -> String {
        let piece = |(tone, text): (Tone, &str)| {
            let text = html_text(text);
            match tone {
                Tone::Plain => text,
                Tone::Code => format!("<code>{text}</code>"),
                Tone::Strong => format!("<strong>{text}</strong>"),
                tone => format!("<span class=\"{}\">{text}</span>", tone.class()),
            }
        };
        self.shown_in(Medium::Html).map(piece).collect()
    }
}

/// `words` with the white space that surrounds `text`.
fn spaced(text: &str, words: &str) -> String {
    let inner = text.trim_matches(' ');
    let (before, after) = match text.split_once(inner) {
        Some((before, after)) if !inner.is_empty() => (before, after),
        _ => (text, ""),
    };
    format!("{before}{words}{after}")
}

/// Foreign text in an HTML element or attribute; invisible characters are shown.
pub fn html_text(text: &str) -> String {
    let visible = escape_invisible_except(text, |c| matches!(c, '\n' | '\t'));
    let mut out = String::with_capacity(visible.len());
    for c in visible.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\r' => {}
            c => out.push(c),
        }
    }
    out
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text::toned(Tone::Plain, text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text::toned(Tone::Plain, text)
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Text {
        Text::toned(Tone::Plain, text.as_str())
    }
}

/// A medium that shows documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// A terminal.
    Terminal,
    /// Markdown.
    Markdown,
    /// HTML.
    Html,
}

/// A table. Columns without a value in any row are left out by [`Table::filled`].
///
/// ```
/// use quorate::view::{Doc, Table};
///
/// let mut doc = Doc::new();
/// let rows = [["skeptic", "", "2"], ["evidence", "", "1"]];
/// doc.table(Table::new(["member", "model", "calls"]).with_rows(rows).filled());
/// assert!(doc.markdown().contains("| skeptic | 2 |"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<Text>>,
    /// Whether all columns but the first are numbers, which HTML and Markdown align to the right.
    is_numeric: bool,
}

impl Table {
    /// A table without rows.
    pub fn new<H: Into<String>>(headings: impl IntoIterator<Item = H>) -> Table {
        Table {
            headings: headings.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            is_numeric: false,
        }
    }

    /// Aligns all columns but the first to the right where the medium can.
    #[must_use]
    pub fn numeric(self) -> Table {
        Table { is_numeric: true, ..self }
    }

    /// Adds a row, with a cell for each heading.
    pub fn row<T: Into<Text>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Adds rows.
    #[must_use]
    pub fn with_rows<T: Into<Text>, R: IntoIterator<Item = T>>(
        mut self,
        rows: impl IntoIterator<Item = R>,
    ) -> Table {
        for row in rows {
            self.row(row);
        }
        self
    }

    /// Removes the columns that are empty in all rows.
    #[must_use]
    pub fn filled(mut self) -> Table {
        let is_filled =
            |at: usize| self.rows.iter().any(|row| row.get(at).is_some_and(|cell| !cell.is_empty()));
        let keep: Vec<bool> = (0..self.headings.len()).map(is_filled).collect();
        let mut at = keep.iter();
        self.headings.retain(|_| *at.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut at = keep.iter();
            row.retain(|_| *at.next().unwrap_or(&true));
        }
        self
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// An entry of a list, with blocks below its line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// Its line.
    pub line: Text,
    /// What belongs to it.
    pub body: Doc,
}

impl<T: Into<Text>> From<T> for Entry {
    fn from(line: T) -> Entry {
        Entry { line: line.into(), body: Doc::new() }
    }
}

/// The longest quote of a problem, in characters.
const MAX_QUOTE_CHARS: usize = 300;

/// A problem of a text: its place, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The text's name.
    pub file: String,
    /// The text; a terminal shows the line of the place if it has the text.
    pub text: Option<Arc<str>>,
    /// The place in the text, in bytes; `None` if the quote does not occur there.
    pub span: Option<Range<usize>>,
    /// Line and column, from 1, in characters.
    pub at: Option<(u64, u64)>,
    /// The words.
    pub quote: String,
    /// The tone of the underline.
    pub tone: Tone,
    /// What is wrong, with at least one entry.
    pub issues: Vec<Issue>,
}

/// What is wrong at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// In a sentence.
    pub text: String,
    /// Its weight, and the members that raised it.
    pub by: Text,
    /// How to mend it.
    pub fix: Option<String>,
}

impl Problem {
    /// A block of lines: each issue with its fix, the first one with the place and its line.
    fn text(&self, indent: usize, width: usize) -> String {
        let mut out = String::new();
        for (at, issue) in self.issues.iter().enumerate() {
            let place = if at == 0 { Text::code(self.place()) } else { Text::default() };
            let line = place.and("  ").and(Text::strong(&*issue.text));
            out.push_str(&layout::split(&line.marked(), &issue.by.marked(), indent, width));
            if at == 0 {
                out.push_str(&self.source(indent, width));
            }
            if let Some(fix) = &issue.fix {
                out.push_str(&layout::wrap_marked(&layout::one_line(fix), indent + 4, width));
            }
        }
        out
    }

    /// The underlined line of the place, or a quote that the text lacks.
    fn source(&self, indent: usize, width: usize) -> String {
        let Some((line, _)) = self.at else {
            let quote = format!("“{}” is not in the text.", self.short_quote());
            return layout::wrap_marked(&quote, indent + 4, width);
        };
        let place = self.text.as_deref().zip(self.span.clone());
        let shown =
            place.and_then(|(text, span)| layout::underlined(text, span, line, self.tone, indent, width));
        shown.unwrap_or_default()
    }

    fn markdown(&self) -> String {
        let mut out = String::new();
        for (at, issue) in self.issues.iter().enumerate() {
            let place = if at == 0 { markdown::code(&self.place()) + " " } else { "\n".to_owned() };
            let _ =
                writeln!(out, "{place}{} · {}", Text::strong(&*issue.text).markdown(), issue.by.markdown());
            if at == 0 {
                let _ = writeln!(out, "\n> {}", markdown::inline(&self.short_quote()));
            }
            if let Some(fix) = &issue.fix {
                let _ = writeln!(out, "\nFix: {}", markdown::inline(fix));
            }
        }
        out
    }

    fn html(&self) -> String {
        let mut out = format!("<div class=\"problem\"><code>{}</code>", html_text(&self.place()));
        let _ = write!(out, "<blockquote>{}</blockquote>", html_text(&self.quote));
        for issue in &self.issues {
            let fix =
                issue.fix.as_ref().map_or_else(String::new, |fix| format!("<br>Fix: {}", html_text(fix)));
            let text = html_text(&issue.text);
            let _ = write!(out, "<p><strong>{text}</strong> {}{fix}</p>", issue.by.html());
        }
        out + "</div>"
    }

    fn short_quote(&self) -> String {
        layout::truncate(&layout::one_line(&self.quote), MAX_QUOTE_CHARS)
    }

    /// `path:line:column`, or the path alone.
    fn place(&self) -> String {
        match self.at {
            Some((line, column)) => format!("{}:{line}:{column}", self.file),
            None => self.file.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Block {
    Title(Text),
    Heading(Text),
    Line(Text),
    Prose(String),
    Facts(Vec<(String, Text)>),
    Table(Table),
    List {
        is_ordered: bool,
        start: usize,
        entries: Vec<Entry>,
    },
    Quote(String),
    Problem(Problem),
    /// A text, and another at the end of its line.
    Split(Text, Text),
    /// Documents with their most lines, of which the first that fits is shown, or the last.
    Fitting(Vec<(usize, Doc)>),
    Section {
        is_indented: bool,
    },
    Passage(String),
    Verbatim {
        language: &'static str,
        text: String,
    },
    Tree(Vec<Entry>),
    Fold(Text, Doc),
    Only(Medium, Box<Block>),
}

/// The lines of a terminal that most readers see at once.
const SCREEN_LINES: usize = 24;

/// A document, built from top to bottom.
///
/// ```
/// use quorate::view::{Doc, Text};
///
/// let mut doc = Doc::new();
/// doc.title(Text::strong("REVISE").and("  draft.md"));
/// doc.heading("Notes");
/// doc.items(["no source for the main claim"]);
/// assert_eq!(doc.text(Default::default()), "REVISE  draft.md\n\nNotes\n  - no source for the main claim\n");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Doc(Vec<Block>);

impl Doc {
    /// An empty document.
    pub fn new() -> Doc {
        Doc::default()
    }

    /// A line for each text; `otherwise` without any.
    pub fn of_lines<T: Into<Text>>(lines: impl IntoIterator<Item = T>, otherwise: &str) -> Doc {
        let mut doc = Doc(lines.into_iter().map(|line| Block::Line(line.into())).collect());
        if doc.is_empty() {
            doc.line(otherwise);
        }
        doc
    }

    /// A table; `otherwise` without rows.
    pub fn of_table(table: Table, otherwise: &str) -> Doc {
        let mut doc = Doc::new();
        match table.is_empty() {
            true => doc.line(otherwise),
            false => doc.table(table),
        }
        doc
    }

    /// Whether it shows nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The title of the document.
    pub fn title(&mut self, text: impl Into<Text>) {
        self.0.push(Block::Title(text.into()));
    }

    /// A heading. The blocks after it belong to it, until the next heading.
    pub fn heading(&mut self, text: impl Into<Text>) {
        self.0.push(Block::Heading(text.into()));
    }

    /// A line, which is wrapped if it is too long. Lines that follow each other form a paragraph of lines.
    pub fn line(&mut self, text: impl Into<Text>) {
        self.0.push(Block::Line(text.into()));
    }

    /// A text with paragraphs and lists, such as an answer; nothing if it is blank.
    pub fn prose(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !text.trim().is_empty() {
            self.0.push(Block::Prose(text));
        }
    }

    /// Facts, each with a label; nothing without facts.
    pub fn facts<L: Into<String>, T: Into<Text>>(&mut self, facts: impl IntoIterator<Item = (L, T)>) {
        let facts: Vec<_> = facts.into_iter().map(|(label, text)| (label.into(), text.into())).collect();
        if !facts.is_empty() {
            self.0.push(Block::Facts(facts));
        }
    }

    /// A table; nothing without rows.
    pub fn table(&mut self, table: Table) {
        if !table.is_empty() {
            self.0.push(Block::Table(table));
        }
    }

    /// A list; nothing without entries.
    pub fn items<E: Into<Entry>>(&mut self, entries: impl IntoIterator<Item = E>) {
        self.list(false, 1, entries);
    }

    /// A numbered list from `start`; nothing without entries.
    pub fn numbered<E: Into<Entry>>(&mut self, start: usize, entries: impl IntoIterator<Item = E>) {
        self.list(true, start, entries);
    }

    fn list<E: Into<Entry>>(&mut self, is_ordered: bool, start: usize, entries: impl IntoIterator<Item = E>) {
        let entries: Vec<Entry> = entries.into_iter().map(Into::into).collect();
        if !entries.is_empty() {
            self.0.push(Block::List { is_ordered, start, entries });
        }
    }

    /// Words of a draft or an answer, quoted.
    pub fn quote(&mut self, text: impl Into<String>) {
        self.0.push(Block::Quote(text.into()));
    }

    /// Foreign text of several lines, set apart from Quorate's own words; nothing if it is blank.
    pub fn passage(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !text.trim().is_empty() {
            self.0.push(Block::Passage(text));
        }
    }

    /// A problem of a text.
    pub fn problem(&mut self, problem: Problem) {
        self.0.push(Block::Problem(problem));
    }

    /// A line with a second text at its end.
    pub fn split(&mut self, line: impl Into<Text>, end: impl Into<Text>) {
        self.0.push(Block::Split(line.into(), end.into()));
    }

    /// For terminals: a body and the verdict at its end; a document longer than a screen has the verdict at both ends. Of
    /// several bodies, each with the most lines of its document, the first that fits is shown, or the last.
    pub fn concluded(&mut self, headline: &Text, bodies: Vec<(usize, Doc)>, end: &Doc) {
        let document = |is_long: bool, body: &Doc| {
            let mut doc = Doc::new();
            if is_long {
                doc.line(headline.clone());
            }
            for part in [body, end] {
                doc.end_section();
                doc.append(part.clone());
            }
            doc
        };
        let short = bodies.first().map(|(_, body)| (SCREEN_LINES, document(false, body)));
        let long = bodies.iter().map(|(most, body)| (*most, document(true, body)));
        let fitting = Block::Fitting(short.into_iter().chain(long).collect());
        self.0.push(Block::Only(Medium::Terminal, Box::new(fitting)));
    }

    /// Begins a section without a heading, which is indented on a terminal.
    pub fn begin_section(&mut self) {
        self.0.push(Block::Section { is_indented: true });
    }

    /// Ends the section of the last heading: what follows belongs to the whole document.
    pub fn end_section(&mut self) {
        self.0.push(Block::Section { is_indented: false });
    }

    /// Lines that keep their breaks and spaces, such as a diff or a configuration.
    pub fn verbatim(&mut self, language: &'static str, text: impl Into<String>) {
        self.0.push(Block::Verbatim { language, text: text.into() });
    }

    /// A tree: entries with the entries below them, connected by lines.
    pub fn tree(&mut self, entries: impl IntoIterator<Item = Entry>) {
        self.0.push(Block::Tree(entries.into_iter().collect()));
    }

    /// A document that a reader opens by its summary; a terminal shows it below the summary.
    pub fn fold(&mut self, summary: impl Into<Text>, doc: Doc) {
        self.0.push(Block::Fold(summary.into(), doc));
    }

    /// Shows the blocks of `doc` in one medium alone.
    pub fn only(&mut self, medium: Medium, doc: Doc) {
        self.0.extend(doc.0.into_iter().filter_map(|block| match block {
            Block::Only(inner, _) if inner != medium => None,
            block @ Block::Only(..) => Some(block),
            block => Some(Block::Only(medium, Box::new(block))),
        }));
    }

    /// Appends the blocks of another document.
    pub fn append(&mut self, doc: Doc) {
        self.0.extend(doc.0);
    }

    /// The document for a terminal, ending with one line break.
    pub fn text(&self, options: TextOptions) -> String {
        layout::finish(&self.marked(0, options), options)
    }

    /// The marked text of [`layout`].
    fn marked(&self, indent: usize, options: TextOptions) -> String {
        let width = options.width;
        let mut out = String::new();
        let (mut before, mut inner): (Option<&Block>, usize) = (None, indent);
        for block in self.shown_in(Medium::Terminal) {
            match block {
                Block::Section { is_indented } => {
                    inner = if *is_indented { indent + 2 } else { indent };
                    // An empty line parts it from what is before it.
                    before = before.and(Some(block));
                    continue;
                }
                Block::Heading(_) | Block::Title(_) => inner = indent,
                _ => {}
            }
            if before.is_some_and(|before| !are_close(before, block)) {
                out.push('\n');
            }
            match block {
                Block::Title(text) | Block::Line(text) => {
                    out.push_str(&layout::wrap_marked(&text.marked(), inner, width));
                }
                Block::Heading(text) => {
                    out.push_str(&layout::wrap_marked(
                        &Tone::Strong.on(&layout::one_line(&text.plain())),
                        inner,
                        width,
                    ));
                    inner = indent + 2;
                }
                Block::Prose(text) => out.push_str(&layout::prose(text, inner, width)),
                Block::Facts(facts) => {
                    let labels: Vec<_> = facts.iter().map(|(label, _)| layout::one_line(label)).collect();
                    let columns = labels.iter().map(|label| layout::columns_of(label)).max().unwrap_or(0);
                    for (label, (_, text)) in labels.iter().zip(facts) {
                        let gap = " ".repeat(columns - layout::columns_of(label) + 1);
                        let label = Tone::Faint.on(&format!("{label}{gap}"));
                        out.push_str(&layout::hanging(&label, &text.marked(), inner, width));
                    }
                }
                Block::Table(table) => {
                    let headings: Vec<_> = table.headings.iter().map(|text| layout::one_line(text)).collect();
                    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
                    let rows = table.rows.iter().map(|row| row.iter().map(Text::marked).collect()).collect();
                    out.push_str(&layout::table(&headings, rows, inner, width));
                }
                Block::List { is_ordered, start, entries } => {
                    for (at, entry) in entries.iter().enumerate() {
                        let mark = if *is_ordered { format!("{}.", start + at) } else { "-".to_owned() };
                        let has_gap = at > 0 || matches!(before, Some(Block::Heading(_)));
                        if has_gap && is_long(&entries[at.saturating_sub(1)]) {
                            out.push('\n');
                        }
                        out.push_str(&layout::hanging(&mark, &entry.line.marked(), inner, width));
                        if !entry.body.is_empty() {
                            out.push_str(&entry.body.marked(inner + mark.len() + 1, options));
                        }
                    }
                }
                Block::Quote(text) => {
                    let line = format!("{}“{}”", " ".repeat(inner), layout::one_line(text));
                    out.push_str(&layout::wrap_marked(line.trim_start(), inner, width));
                }
                Block::Passage(text) => {
                    let bar = format!("{}│ ", " ".repeat(inner));
                    for line in layout::sanitize(text).lines().filter(|line| !line.trim().is_empty()) {
                        let line = layout::one_line(line);
                        out.push_str(&layout::wrap_prefixed(&bar, &bar, &line, usize::MAX, width));
                    }
                }
                Block::Problem(problem) => out.push_str(&problem.text(inner, width)),
                Block::Split(line, end) => {
                    out.push_str(&layout::split(&line.marked(), &end.marked(), inner, width));
                }
                Block::Fitting(choices) => {
                    let mut shown = String::new();
                    for (most, doc) in choices {
                        shown = doc.marked(inner, options);
                        if shown.lines().count() <= *most {
                            break;
                        }
                    }
                    out.push_str(&shown);
                }
                Block::Verbatim { text, .. } => {
                    out.push_str(&layout::indented(&layout::sanitize(text), inner))
                }
                Block::Fold(summary, doc) => {
                    out.push_str(&layout::wrap_marked(&summary.marked(), inner, width));
                    out.push_str(&doc.marked(inner + 2, options));
                }
                Block::Tree(entries) => {
                    let is_narrow = inner + BRANCH * depth(entries) + layout::MIN_WIDTH > width;
                    tree(entries, &" ".repeat(inner), is_narrow, options, &mut out);
                }
                Block::Section { .. } | Block::Only(..) => {}
            }
            before = Some(block);
        }
        out
    }

    fn shown_in(&self, medium: Medium) -> impl Iterator<Item = &Block> {
        self.0.iter().filter_map(move |block| match block {
            Block::Only(only, block) => (*only == medium).then_some(&**block),
            block => Some(block),
        })
    }

    /// The document as Markdown, ending with one line break.
    pub fn markdown(&self) -> String {
        let mut out = self.markdown_blocks("");
        out.truncate(out.trim_end().len());
        out.push('\n');
        out
    }

    /// `indent` precedes each line: the blocks of a list's entry.
    fn markdown_blocks(&self, indent: &str) -> String {
        let mut out = String::new();
        let mut before: Option<&Block> = None;
        for block in self.shown_in(Medium::Markdown).filter(|block| !matches!(block, Block::Section { .. })) {
            // Lines are paragraphs: Markdown would join them.
            if before.is_some() {
                out.push('\n');
            }
            let text = match block {
                Block::Title(text) => format!("## {}\n", text.markdown_plain()),
                Block::Heading(text) => format!("### {}\n", text.markdown_plain()),
                Block::Line(text) => text.markdown() + "\n",
                Block::Prose(text) => markdown::paragraphs(text),
                Block::Facts(facts) => {
                    let fact = |(label, text): &(String, Text)| {
                        format!("- {}: {}\n", markdown::inline(label), text.markdown())
                    };
                    facts.iter().map(fact).collect()
                }
                Block::Table(table) => markdown_table(table),
                Block::List { is_ordered, start, entries } => {
                    let mut list = String::new();
                    for (at, entry) in entries.iter().enumerate() {
                        let mark = if *is_ordered { format!("{}.", start + at) } else { "-".to_owned() };
                        if at > 0 && !entries[at - 1].body.is_empty() {
                            list.push('\n');
                        }
                        let _ = writeln!(list, "{mark} {}", entry.line.markdown());
                        if !entry.body.is_empty() {
                            let body = entry.body.markdown_blocks(&" ".repeat(mark.len() + 1));
                            let _ = writeln!(list, "\n{}", body.trim_end());
                        }
                    }
                    list
                }
                Block::Quote(text) => format!("> {}\n", markdown::inline(text)),
                Block::Problem(problem) => problem.markdown(),
                Block::Split(line, end) => format!("{}  {}\n", line.markdown(), end.markdown()),
                Block::Passage(text) => {
                    let lines = markdown::paragraphs(text);
                    lines.lines().map(|line| format!("> {line}").trim_end().to_owned() + "\n").collect()
                }
                Block::Verbatim { language, text } => markdown::fenced_as(language, text),
                Block::Fold(summary, doc) => {
                    // A line break would end the element.
                    let summary = layout::one_line(&summary.html());
                    let body = doc.markdown();
                    format!("<details>\n<summary>{summary}</summary>\n\n{body}\n</details>\n")
                }
                Block::Tree(entries) => {
                    let mut list = String::new();
                    markdown_tree(entries, 0, &mut list);
                    list
                }
                Block::Section { .. } | Block::Only(..) | Block::Fitting(_) => String::new(),
            };
            for line in text.lines() {
                let _ = if line.is_empty() { writeln!(out) } else { writeln!(out, "{indent}{line}") };
            }
            before = Some(block);
        }
        out
    }

    /// The document as the content of an HTML element.
    pub fn html(&self) -> String {
        let mut out = String::new();
        for block in self.shown_in(Medium::Html) {
            let _ = match block {
                Block::Title(text) => writeln!(out, "<h1>{}</h1>", text.html()),
                Block::Heading(text) => writeln!(out, "<h2>{}</h2>", text.html()),
                Block::Line(text) => writeln!(out, "<p>{}</p>", text.html()),
                Block::Prose(text) => writeln!(out, "<p class=\"prose\">{}</p>", html_text(text.trim())),
                Block::Facts(facts) => {
                    let fact = |(label, text): &(String, Text)| {
                        format!("<dt>{}</dt><dd>{}</dd>", html_text(label), text.html())
                    };
                    writeln!(out, "<dl>{}</dl>", facts.iter().map(fact).collect::<String>())
                }
                Block::Table(table) => writeln!(out, "{}", html_table(table)),
                Block::List { is_ordered, start, entries } => {
                    let (open, close) = match is_ordered {
                        true => (format!("<ol start=\"{start}\">"), "</ol>"),
                        false => ("<ul>".to_owned(), "</ul>"),
                    };
                    let entries: String = entries.iter().map(html_entry).collect();
                    writeln!(out, "{open}{entries}{close}")
                }
                Block::Quote(text) => writeln!(out, "<blockquote>{}</blockquote>", html_text(text)),
                Block::Problem(problem) => writeln!(out, "{}", problem.html()),
                Block::Split(line, end) => writeln!(out, "<p>{}  {}</p>", line.html(), end.html()),
                Block::Passage(text) => {
                    writeln!(out, "<blockquote class=\"prose\">{}</blockquote>", html_text(text.trim()))
                }
                Block::Verbatim { text, .. } => writeln!(out, "<pre>{}</pre>", html_text(text)),
                Block::Fold(summary, doc) => {
                    let (summary, body) = (summary.html(), doc.html());
                    writeln!(out, "<details><summary>{summary}</summary>{body}</details>")
                }
                Block::Tree(entries) => {
                    writeln!(
                        out,
                        "<ul class=\"tree\">{}</ul>",
                        entries.iter().map(html_entry).collect::<String>()
                    )
                }
                Block::Section { .. } | Block::Only(..) | Block::Fitting(_) => Ok(()),
            };
        }
        out
    }
}

/// Whether no empty line parts two blocks on a terminal.
fn are_close(before: &Block, block: &Block) -> bool {
    matches!(
        (before, block),
        (Block::Heading(_), _)
            | (Block::Line(_) | Block::Title(_), Block::Line(_) | Block::Facts(_) | Block::List { .. })
            | (Block::Quote(_) | Block::Passage(_), Block::Line(_) | Block::List { .. } | Block::Facts(_))
            | (Block::Line(_), Block::Quote(_) | Block::Passage(_))
            | (Block::Split(..), Block::Line(_))
            | (Block::Problem(Problem { text: None, .. }), Block::Problem(_) | Block::Line(_))
    )
}

/// Whether an empty line parts an entry from the next on a terminal.
fn is_long(entry: &Entry) -> bool {
    entry.body.0.iter().filter(|block| !matches!(block, Block::Line(_))).count() > 1
}

/// The columns of a level of a tree, if it is not narrow.
const BRANCH: usize = 3;

/// The levels of a tree.
fn depth(entries: &[Entry]) -> usize {
    let below = |entry: &Entry| {
        let trees = entry.body.shown_in(Medium::Terminal).map(|block| match block {
            Block::Tree(entries) => depth(entries),
            _ => 0,
        });
        trees.max().unwrap_or_default()
    };
    entries.iter().map(|entry| 1 + below(entry)).max().unwrap_or_default()
}

/// The entries of a tree, each line after `prefix`. A level of a narrow tree takes one column.
fn tree(entries: &[Entry], prefix: &str, is_narrow: bool, options: TextOptions, out: &mut String) {
    let width = options.width;
    for (at, entry) in entries.iter().enumerate() {
        let (branch, rail) = match (at + 1 == entries.len(), is_narrow) {
            (true, false) => ("└─ ", "   "),
            (false, false) => ("├─ ", "│  "),
            (true, true) => ("└ ", "  "),
            (false, true) => ("├ ", "│ "),
        };
        let (first, rest) = (format!("{prefix}{branch}"), format!("{prefix}{rail}"));
        out.push_str(&layout::wrap_prefixed(&first, &rest, &entry.line.marked(), usize::MAX, width));
        for block in entry.body.shown_in(Medium::Terminal) {
            match block {
                Block::Tree(entries) => {
                    let prefix = if is_narrow { &rest[..rest.len() - 1] } else { &rest };
                    tree(entries, prefix, is_narrow, options, out);
                }
                block => {
                    let width = width.saturating_sub(layout::columns_of(&rest));
                    let text = Doc(vec![block.clone()]).marked(0, TextOptions { width, ..options });
                    for line in text.lines() {
                        let _ = writeln!(out, "{rest}{line}");
                    }
                }
            }
        }
    }
}

fn markdown_table(table: &Table) -> String {
    let headings: Vec<String> = table.headings.iter().map(|heading| markdown::inline(heading)).collect();
    let rule = |at: usize| if table.is_numeric && at > 0 { " ---: |" } else { " --- |" };
    let rules: String = (0..headings.len()).map(rule).collect();
    let mut out = format!("| {} |\n|{rules}\n", headings.join(" | "));
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(Text::markdown_plain).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}

fn markdown_tree(entries: &[Entry], depth: usize, out: &mut String) {
    for entry in entries {
        let _ = writeln!(out, "{}- {}", "  ".repeat(depth), entry.line.markdown());
        for block in entry.body.shown_in(Medium::Markdown) {
            match block {
                Block::Tree(entries) => markdown_tree(entries, depth + 1, out),
                block => {
                    let text = Doc(vec![block.clone()]).markdown_blocks(&"  ".repeat(depth + 1));
                    out.push_str(&text);
                }
            }
        }
    }
}

fn html_table(table: &Table) -> String {
    let class = |at: usize| if table.is_numeric && at > 0 { " class=\"number\"" } else { "" };
    let label = html_text(&table.headings.join(", "));
    let mut out = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table><thead><tr>"
    );
    for (at, heading) in table.headings.iter().enumerate() {
        let _ = match heading.is_empty() {
            true => write!(out, "<td></td>"),
            false => write!(out, "<th scope=\"col\"{}>{}</th>", class(at), html_text(heading)),
        };
    }
    out.push_str("</tr></thead><tbody>");
    for row in &table.rows {
        out.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let _ = match at {
                0 => write!(out, "<th scope=\"row\">{}</th>", cell.html()),
                _ => write!(out, "<td{}>{}</td>", class(at), cell.html()),
            };
        }
        out.push_str("</tr>");
    }
    out + "</tbody></table></div>"
}

fn html_entry(entry: &Entry) -> String {
    format!("<li>{}{}</li>", entry.line.html(), entry.body.html())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Doc {
        let mut doc = Doc::new();
        doc.title(Text::toned(Tone::Fair, "REVISE").and("  ").and(Text::code("a|b.md")));
        doc.line("1 of 4 objects.");
        doc.heading("Places");
        let mut body = Doc::new();
        body.quote("we *always* win");
        body.items(["name the <study>"]);
        doc.numbered(1, [Entry { line: Text::strong("evidence").and(" blocks"), body }]);
        doc.heading("Members");
        let mut table = Table::new(["member", "model", "calls"]).numeric();
        table.row(["skeptic", "", "2"]);
        doc.table(table.filled());
        doc.only(Medium::Markdown, {
            let mut only = Doc::new();
            only.verbatim("mermaid", "graph TD\n");
            only
        });
        doc
    }

    #[test]
    fn one_document_has_three_forms() {
        let plain = TextOptions { width: 60, ..TextOptions::default() };
        let text = "REVISE  a|b.md\n1 of 4 objects.\n\nPlaces\n\n  1. evidence blocks\n     “we *always* win”\n     - name the <study>\n\n\
                    Members\n  member   calls\n  ──────────────\n  skeptic  2\n";
        assert_eq!(sample().text(plain), text);
        let markdown = "## REVISE  `a│b.md`\n\n1 of 4 objects.\n\n### Places\n\n1. **evidence** blocks\n\n   > we \\*always\\* win\n\n   - name \
                        the &lt;study&gt;\n\n### Members\n\n| member | calls |\n| --- | ---: |\n| skeptic | 2 |\n\n```mermaid\ngraph TD\n```\n";
        assert_eq!(sample().markdown(), markdown);
        let html = sample().html();
        for part in [
            "<h1><span class=\"fair\">REVISE</span>  <code>a|b.md</code></h1>",
            "<li><strong>evidence</strong> blocks<blockquote>we *always* win</blockquote>",
            "<li>name the &lt;study&gt;</li>",
            "<th scope=\"col\" class=\"number\">calls</th>",
        ] {
            assert!(html.contains(part), "{html}");
        }
        assert!(!html.contains("graph TD"), "{html}");
    }

    #[test]
    fn foreign_text_stays_text() {
        let mut doc = Doc::new();
        doc.title("<b>\u{1b}[31m\u{202e}x");
        doc.line("- # @octocat `a`");
        doc.quote("a\n# b");
        doc.verbatim("", "```\n<script>");
        for written in [doc.text(TextOptions::default()), doc.markdown(), doc.html()] {
            assert!(!written.contains(['\u{1b}', '\u{202e}']), "{written}");
        }
        assert!(!doc.html().contains("<script>") && !doc.html().contains("<b>"), "{}", doc.html());
        assert!(
            doc.markdown().contains("````") && !doc.markdown().contains("@octocat"),
            "{}",
            doc.markdown()
        );
    }

    #[test]
    fn foreign_text_stays_in_its_cell_and_its_element() {
        const HOSTILE: [&str; 4] = ["a\" onload=\"x", "<img src=x>|y\nz", "<i>", "\u{1b}[31m\u{202e}"];
        let mut doc = Doc::new();
        let mut table = Table::new(HOSTILE);
        table.row(HOSTILE);
        table.row(HOSTILE.map(Text::strong));
        table.row(HOSTILE.map(Text::code));
        table.row(["\n", " \n ", "\t", "\r\n"].map(Text::strong));
        doc.table(table);
        doc.items(HOSTILE);
        doc.facts(HOSTILE.map(|text| (text, text)));
        let mut inner = Doc::new();
        HOSTILE.iter().for_each(|text| inner.line(*text));
        doc.fold(HOSTILE.concat(), inner);
        doc.tree(HOSTILE.map(Entry::from));
        let html = doc.html();
        for tag in ["<img", "\" onload", "<i>"] {
            assert!(!html.contains(tag), "{tag} in {html}");
        }
        assert!(html.contains("<dt>&lt;i&gt;</dt><dd>&lt;i&gt;</dd>"), "{html}");
        for written in [doc.text(TextOptions::default()), doc.markdown(), html] {
            assert!(!written.contains(['\u{1b}', '\u{202e}']), "{written}");
        }
        insta::assert_snapshot!(doc.markdown(), @r#"
        | a" onload="x | &lt;img src=x&gt;\|y z | &lt;i&gt; | \[U+001B\]\[31m\[U+202E\] |
        | --- | --- | --- | --- |
        | a" onload="x | &lt;img src=x&gt;\|y z | &lt;i&gt; | \[U+001B\]\[31m\[U+202E\] |
        | a" onload="x | &lt;img src=x&gt;\|y z | &lt;i&gt; | \[U+001B\]\[31m\[U+202E\] |
        | `a" onload="x` | `<img src=x>│y z` | `<i>` | `[U+001B][31m[U+202E]` |
        |  |    |  |  |

        - a" onload="x
        - &lt;img src=x&gt;\|y z
        - &lt;i&gt;
        - \[U+001B\]\[31m\[U+202E\]

        - a" onload="x: a" onload="x
        - &lt;img src=x&gt;\|y z: &lt;img src=x&gt;\|y z
        - &lt;i&gt;: &lt;i&gt;
        - \[U+001B\]\[31m\[U+202E\]: \[U+001B\]\[31m\[U+202E\]

        <details>
        <summary>a&quot; onload=&quot;x&lt;img src=x&gt;|y z&lt;i&gt;[U+001B][31m[U+202E]</summary>

        a" onload="x

        &lt;img src=x&gt;\|y z

        &lt;i&gt;

        \[U+001B\]\[31m\[U+202E\]

        </details>

        - a" onload="x
        - &lt;img src=x&gt;\|y z
        - &lt;i&gt;
        - \[U+001B\]\[31m\[U+202E\]
        "#);
        insta::assert_snapshot!(doc.text(TextOptions::default()), @r#"
        a" onload="x  <img src=x>|y z  <i>  [U+001B][31m[U+202E]
        ────────────────────────────────────────────────────────
        a" onload="x  <img src=x>|y z  <i>  [U+001B][31m[U+202E]
        a" onload="x  <img src=x>|y z  <i>  [U+001B][31m[U+202E]
        a" onload="x  <img src=x>|y z  <i>  [U+001B][31m[U+202E]


        - a" onload="x
        - <img src=x>|y z
        - <i>
        - [U+001B][31m[U+202E]

        a" onload="x          a" onload="x
        <img src=x>|y z       <img src=x>|y z
        <i>                   <i>
        [U+001B][31m[U+202E]  [U+001B][31m[U+202E]

        a" onload="x<img src=x>|y z<i>[U+001B][31m[U+202E]
          a" onload="x
          <img src=x>|y z
          <i>
          [U+001B][31m[U+202E]

        ├─ a" onload="x
        ├─ <img src=x>|y z
        ├─ <i>
        └─ [U+001B][31m[U+202E]
        "#);
    }

    #[test]
    fn a_deep_tree_fits_a_narrow_terminal() {
        let entry = |name: String, below: Vec<Entry>| {
            let mut entry = Entry::from(name.clone());
            entry.body.facts([("said", format!("It is {name}, and it goes on for more than a line."))]);
            entry.body.tree(below);
            entry
        };
        let branch = |below: Vec<Entry>, level: u32| {
            vec![entry(format!("n{level}"), below), entry(format!("leaf {level}"), Vec::new())]
        };
        let mut doc = Doc::new();
        doc.heading("Tree");
        doc.tree((0..5).rev().fold(Vec::new(), branch));
        insta::assert_snapshot!(doc.text(TextOptions { width: 40, ..TextOptions::default() }), @"
        Tree
          ├ n0
          │ said  It is n0, and it goes on for
          │       more than a line.
          │├ n1
          ││ said  It is n1, and it goes on for
          ││       more than a line.
          ││├ n2
          │││ said  It is n2, and it goes on for
          │││       more than a line.
          │││├ n3
          ││││ said  It is n3, and it goes on
          ││││       for more than a line.
          ││││├ n4
          │││││ said  It is n4, and it goes on
          │││││       for more than a line.
          ││││└ leaf 4
          ││││  said  It is leaf 4, and it goes
          ││││        on for more than a line.
          │││└ leaf 3
          │││  said  It is leaf 3, and it goes
          │││        on for more than a line.
          ││└ leaf 2
          ││  said  It is leaf 2, and it goes on
          ││        for more than a line.
          │└ leaf 1
          │  said  It is leaf 1, and it goes on
          │        for more than a line.
          └ leaf 0
            said  It is leaf 0, and it goes on
                  for more than a line.
        ");
    }
}
