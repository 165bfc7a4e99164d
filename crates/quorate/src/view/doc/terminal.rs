//! Documents on terminals.

use std::fmt::Write as _;

use quorate_diagnostics::render::TextOptions;

use super::{Block, Conclusion, Doc, Entry, Problem, Text, Tone, layout, spaced};

/// The lines of a terminal that most readers see at once.
const SCREEN_LINES: usize = 24;

impl Text {
    /// The marked text of [`layout`], on one line. White space at the ends of pieces stays.
    fn marked(&self) -> String {
        self.written(|tone, text| {
            let words = spaced(text, &layout::one_line(text));
            if words.is_empty() { words } else { tone.on(&words) }
        })
    }
}

impl Problem {
    /// A block of lines: the place with its line of the text, and each issue with its fix.
    fn text(&self, indent: usize, width: usize) -> String {
        let mut out = String::new();
        for (at, issue) in self.issues.iter().enumerate() {
            let head = match at {
                0 => Text::code(self.place()).and("  ").and(issue.by.clone()),
                _ => Text::from("  ").and(issue.by.clone()),
            };
            out.push_str(&layout::wrap_marked(&head.marked(), indent, width));
            if at == 0 {
                out.push_str(&self.source(indent, width));
            }
            out.push_str(&layout::wrap_marked(&Text::strong(&*issue.text).marked(), indent + 4, width));
            if let Some(fix) = &issue.fix {
                out.push_str(&layout::hanging("→", &layout::one_line(fix), indent + 4, width));
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
}

impl Conclusion {
    /// The first body that fits, and the verdict at its end; what is longer than a screen has the verdict at both ends.
    fn text(&self, indent: usize, options: TextOptions) -> String {
        let (headline, width) = (self.headline.marked(), options.width);
        let end = layout::split(&headline, &self.run.marked(), indent, width);
        let end = end + &self.next.marked(indent, options);
        let mut shown = String::new();
        for (at, (most, body)) in self.bodies.iter().enumerate() {
            let body = body.marked(indent, options);
            shown = if body.is_empty() { end.clone() } else { format!("{body}\n{end}") };
            if at == 0 && shown.lines().count() <= SCREEN_LINES {
                break;
            }
            shown = format!("{}\n{shown}", layout::wrap_hanging(&headline, indent, width));
            if shown.lines().count() <= *most {
                break;
            }
        }
        shown
    }
}

impl Doc {
    /// The document for a terminal, ending with one line break.
    pub fn text(&self, options: TextOptions) -> String {
        layout::finish(&self.marked(0, options), options)
    }

    /// The marked text of [`layout`].
    fn marked(&self, indent: usize, options: TextOptions) -> String {
        let width = options.width;
        let mut out = String::new();
        let (mut before, mut inner): (Option<&Block>, usize) = (None, indent);
        for block in &self.0 {
            match block {
                Block::Section { is_indented } => {
                    inner = if *is_indented { indent + 2 } else { indent };
                    // An empty line parts it from what is before it.
                    before = before.and(Some(block));
                    continue;
                }
                Block::Diagram(_) => continue,
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
                    let text = Tone::Strong.on(&layout::one_line(&text.plain()));
                    out.push_str(&layout::wrap_marked(&text, inner, width));
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
                Block::List { is_ordered, entries } => {
                    for (at, entry) in entries.iter().enumerate() {
                        let mark = if *is_ordered { format!("{}.", at + 1) } else { "-".to_owned() };
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
                Block::Passage(text) => {
                    let bar = format!("{}│ ", " ".repeat(inner));
                    for line in layout::sanitize(text).lines().filter(|line| !line.trim().is_empty()) {
                        let line = layout::one_line(line);
                        out.push_str(&layout::wrap_prefixed(&bar, &bar, &line, width));
                    }
                }
                Block::Problem(problem) => out.push_str(&problem.text(inner, width)),
                Block::Conclusion(conclusion) => out.push_str(&conclusion.text(inner, options)),
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
                Block::Section { .. } | Block::Diagram(_) => {}
            }
            before = Some(block);
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
            | (Block::Passage(_), Block::Line(_) | Block::List { .. } | Block::Facts(_))
            | (Block::Line(_), Block::Passage(_))
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
        let trees = entry.body.0.iter().map(|block| match block {
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
        out.push_str(&layout::wrap_prefixed(&first, &rest, &entry.line.marked(), width));
        for block in &entry.body.0 {
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
