//! Diagnostics as GitHub workflow commands; GitHub shows each as an annotation at its line.

use super::{Level, LineIndexes, sorted_diagnostics};
use crate::Report;
use crate::invisible::escape_invisible;
use crate::text::Position;

/// Renders one command per diagnostic.
pub fn github(report: &Report) -> String {
    let lines = LineIndexes::new(report);
    let mut out = String::new();
    for item in sorted_diagnostics(report) {
        let file = item.body.place.as_ref().map_or("", |place| &place.file);
        let position = lines.positions(&item).map(|(start, _)| start);
        let message = match &item.body.help {
            Some(help) => format!("{}\n{help}", item.body.message),
            None => item.body.message.clone(),
        };
        out.push_str(&annotation(item.severity.into(), file, position, item.code, &message));
        out.push('\n');
    }
    out
}

/// One command, without a final line break. `file` and `title` may be empty.
pub fn annotation(
    level: Level,
    file: &str,
    position: Option<Position>,
    title: &str,
    message: &str,
) -> String {
    let name = match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "notice",
    };
    let mut properties = Vec::new();
    if !file.is_empty() {
        properties.push(format!("file={}", escape_property(file)));
        if let Some(Position { line, column }) = position {
            properties.push(format!("line={line},col={column}"));
        }
    }
    if !title.is_empty() {
        properties.push(format!("title={}", escape_property(title)));
    }
    let space = if properties.is_empty() { "" } else { " " };
    format!("::{name}{space}{}::{}", properties.join(","), escape_message(message))
}

/// Escapes characters that would end a message, and invisible characters.
fn escape_message(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in escape_invisible(text).chars() {
        match c {
            '%' => escaped.push_str("%25"),
            '\r' => escaped.push_str("%0D"),
            '\n' => escaped.push_str("%0A"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Escapes characters that would end a property.
fn escape_property(text: &str) -> String {
    escape_message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn each_diagnostic_is_one_command() {
        let text = github(&fixture::report());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "::error title=quorate%3Ausage::no file was named");
        assert_eq!(
            lines[1],
            "::error file=council.yaml,line=1,col=1,title=quorate%3Acouncil_invalid::`id` is missing%0Aadd `id`: a name"
        );
        assert!(lines[3].starts_with("::warning file=council.yaml,line=2,col=16,"), "{}", lines[3]);
    }

    #[test]
    fn no_text_ends_the_command() {
        let at = Some(Position { line: 3, column: 7 });
        assert_eq!(
            annotation(Level::Note, "a,b:c%.md", at, "x: y, z", "50%\r\n::error::no"),
            "::notice file=a%2Cb%3Ac%25.md,line=3,col=7,title=x%3A y%2C z::50%25%0D%0A::error::no"
        );
        assert_eq!(annotation(Level::Error, "", None, "", "m"), "::error::m");
        assert_eq!(
            annotation(Level::Error, "a\u{202e}b", None, "\u{2066}", "c\u{2028}d\u{2029}"),
            "::error file=a[U+202E]b,title=[U+2066]::c[U+2028]d[U+2029]"
        );
    }
}
