//! Foreign text in Markdown: escaped, so that it cannot format, link or mention.

use super::layout::{one_line, sanitize};

/// Has no width, but keeps renderers from recognizing a mention or a reference behind it.
const ZERO_WIDTH_SPACE: &str = "&#8203;";

/// Text on one line, for running text and table cells.
pub fn inline(text: &str) -> String {
    escaped(&one_line(text))
}

/// Escaped paragraphs. Lists stay lists.
pub fn paragraphs(text: &str) -> String {
    let mut out = String::new();
    for paragraph in sanitize(text).trim().lines() {
        let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let (bullet, rest) = match words.strip_prefix("- ").or_else(|| words.strip_prefix("* ")) {
            Some(rest) => ("- ", rest),
            None => ("", &*words),
        };
        out.push_str(bullet);
        out.push_str(&escaped(rest));
        out.push('\n');
    }
    out
}

/// A word as code, which its content cannot end.
pub fn code(text: &str) -> String {
    let text = one_line(text).replace('|', "\u{2502}");
    let fence = "`".repeat(longest_run(&text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// Text on one line, within an HTML element.
pub fn html(text: &str) -> String {
    one_line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Lines as a code block, which their content cannot end.
pub fn fenced(text: &str) -> String {
    fenced_as("text", text)
}

/// As [`fenced`], in a language.
pub fn fenced_as(language: &str, text: &str) -> String {
    let text = sanitize(text);
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end())
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    let mut begin = 0;
    while let Some(c) = rest.next() {
        let from_here = &text[begin..];
        begin += c.len_utf8();
        match c {
            c if !before.is_alphanumeric() && begins_reference(from_here) => {
                out.push(c);
                out.push_str(ZERO_WIDTH_SPACE);
            }
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' | '#' if rest.peek().is_some_and(|next| next.is_alphanumeric()) => {
                out.push(c);
                out.push_str(ZERO_WIDTH_SPACE);
            }
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' | '!' => {
                out.push('\\');
                out.push(c);
            }
            // At the beginning of a line these start a heading, a list or a rule.
            '#' | '-' | '+' | '=' if out.is_empty() => {
                out.push('\\');
                out.push(c);
            }
            '.' | ')'
                if rest.peek().is_none_or(|next| *next == ' ')
                    && out.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                out.push('\\');
                out.push(c);
            }
            // Bare addresses would become links.
            ':' if before.is_alphanumeric() && rest.peek() == Some(&'/') => {
                out.push(c);
                out.push_str(ZERO_WIDTH_SPACE);
            }
            // :tada: is a picture.
            ':' if !before.is_alphanumeric() && rest.peek().is_some_and(|next| begins_emoji(*next)) => {
                out.push(c);
                out.push_str(ZERO_WIDTH_SPACE);
            }
            '.' if out.ends_with("www") => {
                out.push_str(ZERO_WIDTH_SPACE);
                out.push(c);
            }
            c => out.push(c),
        }
        before = c;
    }
    out
}

/// Whether a text begins with what GitHub links without any sign: an issue (`GH-12`), an advisory, or a commit by seven or more digits of its
/// hash.
fn begins_reference(text: &str) -> bool {
    let (word, rest) = text.split_at(text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len()));
    let is_prefix = ["GH", "GHSA", "CVE"].iter().any(|prefix| word.eq_ignore_ascii_case(prefix));
    let is_hash = (7..=64).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && word.bytes().any(|byte| byte.is_ascii_digit());
    is_hash || is_prefix && rest.starts_with('-') && rest[1..].starts_with(char::is_alphanumeric)
}

fn begins_emoji(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(inline(text), expected);
    }

    #[test]
    fn nothing_formats_links_or_calls() {
        check("*a* _b_ `c` ~d~ [e](f) | g", "\\*a\\* \\_b\\_ \\`c\\` \\~d\\~ \\[e\\](f) \\| g");
        check("<script>&amp;", "&lt;script&gt;&amp;amp;");
        check("ping @octocat, fixes #12", "ping @&#8203;octocat, fixes #&#8203;12");
        check("https://a.example www.b.example", "https:&#8203;//a.example www&#8203;.b.example");
        check("# a\n\n- b", "\\# a - b");
        check("1. a", "1\\. a");
        check("2.5", "2.5");
        check("GH-12, at 10:30 :tada: so: no", "G&#8203;H-12, at 10:30 :&#8203;tada: so: no");
        check("CVE-2021-44228 ghsa-jfh8-c2jp", "C&#8203;VE-2021-44228 g&#8203;hsa-jfh8-c2jp");
        check("fixed in 9515ae5, v9515ae5", "fixed in 9&#8203;515ae5, v9515ae5");
        check("é9515ae56 defaced 123456 GH- é", "é9515ae56 defaced 123456 GH- é");
        check("", "");
    }

    #[test]
    fn paragraphs_and_lists_stay() {
        assert_eq!(paragraphs("a *b*\n\n* c\n- d\n===\n"), "a \\*b\\*\n\n- c\n- d\n\\===\n");
    }

    #[test]
    fn code_cannot_be_ended_from_within() {
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("``a"), "``` ``a ```");
        assert_eq!(code("a\n|b"), "`a │b`");
        assert_eq!(fenced("x\n```\ny\n"), "````text\nx\n```\ny\n````\n");
    }
}
