//! Quoting of texts in messages.

/// Longer texts are cut.
const MAX_CHARS: usize = 60;

/// A text in backquotes on one line, cut to [`MAX_CHARS`], with invisible characters escaped; `empty` for an empty text.
pub(super) fn quoted(text: &str) -> String {
    if text.is_empty() {
        return "empty".to_owned();
    }
    let mut out = String::from("`");
    for (at, c) in text.chars().enumerate() {
        match c {
            _ if at == MAX_CHARS => {
                out.push('…');
                break;
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_invisible(c) => out.push_str(&format!("\\u{{{:X}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('`');
    out
}

fn is_invisible(c: char) -> bool {
    let is_format_control = matches!(
        c,
        '\u{AD}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}'
    );
    c.is_control() || is_format_control || (c.is_whitespace() && c != ' ')
}

/// The first sentence of a description, in the form that follows a colon: lower-case, without a full stop.
pub(super) fn clause(description: &str) -> String {
    let first = description.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let first = first.replace('\n', " ");
    let mut chars = first.chars();
    chars.next().map_or_else(String::new, |initial| initial.to_lowercase().chain(chars).collect())
}
