//! Documents as Markdown.

use std::fmt::Write as _;

use super::super::markdown;
use super::{Block, Doc, Entry, Piece, Problem, Table, Text, Tone, layout, spaced};

impl Text {
    fn markdown(&self) -> String {
        self.written(|tone, text| match tone {
            // A line break would end the line, or the row of a table.
            _ if layout::one_line(text).is_empty() => text.replace(|c| c != ' ', ""),
            Tone::Plain | Tone::Faint => spaced(text, &markdown::inline(text)),
            Tone::Code => spaced(text, &markdown::code(text)),
            _ => spaced(text, &format!("**{}**", markdown::inline(text))),
        })
    }

    /// Without bold words: for headings, which are bold already, and for tables.
    fn markdown_plain(&self) -> String {
        let plain = |piece: &Piece| match piece.tone {
            Tone::Code => piece.clone(),
            _ => Piece { tone: Tone::Plain, ..piece.clone() },
        };
        Text(self.0.iter().map(plain).collect()).markdown()
    }
}

impl Problem {
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
}

impl Doc {
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
        for block in self.0.iter().filter(|block| !matches!(block, Block::Section { .. })) {
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
                Block::List { is_ordered, entries } => {
                    let mut list = String::new();
                    for (at, entry) in entries.iter().enumerate() {
                        let mark = if *is_ordered { format!("{}.", at + 1) } else { "-".to_owned() };
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
                Block::Problem(problem) => problem.markdown(),
                Block::Conclusion(conclusion) => conclusion.document().markdown_blocks(""),
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
                Block::Diagram(text) => markdown::fenced_as("mermaid", text),
                Block::Section { .. } => String::new(),
            };
            for line in text.lines() {
                let _ = if line.is_empty() { writeln!(out) } else { writeln!(out, "{indent}{line}") };
            }
            before = Some(block);
        }
        out
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
        for block in &entry.body.0 {
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
