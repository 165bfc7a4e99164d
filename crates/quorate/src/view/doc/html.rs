//! Documents as HTML.

use std::fmt::Write as _;

use quorate_diagnostics::invisible::escape_invisible_except;

use super::{Block, Doc, Entry, Problem, Table, Text, Tone};

impl Text {
    pub(super) fn html(&self) -> String {
        self.written(|tone, text| {
            let text = html_text(text);
            match tone {
                Tone::Plain => text,
                Tone::Code => format!("<code>{text}</code>"),
                Tone::Strong => format!("<strong>{text}</strong>"),
                tone => format!("<span class=\"{}\">{text}</span>", tone.class()),
            }
        })
    }
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

impl Problem {
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
}

impl Doc {
    /// The document as the content of an HTML element.
    pub fn html(&self) -> String {
        let mut out = String::new();
        for block in &self.0 {
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
                Block::List { is_ordered: true, entries } => {
                    writeln!(out, "<ol>{}</ol>", html_entries(entries))
                }
                Block::List { entries, .. } => writeln!(out, "<ul>{}</ul>", html_entries(entries)),
                Block::Problem(problem) => writeln!(out, "{}", problem.html()),
                Block::Passage(text) => {
                    writeln!(out, "<blockquote class=\"prose\">{}</blockquote>", html_text(text.trim()))
                }
                Block::Verbatim { text, .. } => writeln!(out, "<pre>{}</pre>", html_text(text)),
                Block::Fold(summary, doc) => {
                    let (summary, body) = (summary.html(), doc.html());
                    writeln!(out, "<details><summary>{summary}</summary>{body}</details>")
                }
                Block::Tree(entries) => {
                    writeln!(out, "<ul class=\"tree\">{}</ul>", html_entries(entries))
                }
                Block::Conclusion(conclusion) => write!(out, "{}", conclusion.document().html()),
                Block::Section { .. } | Block::Diagram(_) => Ok(()),
            };
        }
        out
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

fn html_entries(entries: &[Entry]) -> String {
    entries.iter().map(|entry| format!("<li>{}{}</li>", entry.line.html(), entry.body.html())).collect()
}
