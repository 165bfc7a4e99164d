//! Translates regular expressions of JSON Schema (ECMA-262) to the syntax of the regex crate.

use std::sync::OnceLock;

use regex_automata::meta;

/// The classes `\d`, `\w` and `\s`. White space as in ECMA-262 includes the byte order mark, but not the next-line
/// character.
const DIGITS: &str = "0-9";
const WORD: &str = "A-Za-z0-9_";
const WHITE: &str = r"\t-\r\x20\xA0\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}";
/// The class `.`.
const ANY: &str = r"[^\n\r\x{2028}\x{2029}]";

/// A regular expression, compiled on first use.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// The text in the schema.
    pub(super) text: String,
    /// The text after "it has to be" in messages.
    pub(super) description: Option<String>,
    translated: String,
    compiled: OnceLock<Option<meta::Regex>>,
}

impl Pattern {
    /// Parses an expression; `None` if it cannot be translated.
    pub(crate) fn parse(text: &str, says: Option<&str>) -> Option<Pattern> {
        let translated = translate(text)?;
        Some(Pattern {
            text: text.to_owned(),
            description: says.map(str::to_owned),
            translated,
            compiled: OnceLock::new(),
        })
    }

    /// Whether a text matches. No text matches an expression that is too large.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| compile(&self.translated));
        compiled.as_ref().is_some_and(|pattern| pattern.is_match(text))
    }
}

/// `None` for an expression that is too large. Few texts are matched, and they are short: a table of all states would take longer to
/// make than they take.
fn compile(pattern: &str) -> Option<meta::Regex> {
    /// As much as the regex crate allows by default.
    const MAX_BYTES: usize = 10 << 20;
    let config = meta::Config::new().dfa(false).nfa_size_limit(Some(MAX_BYTES));
    meta::Regex::builder().configure(config).build(pattern).ok()
}

fn translate(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match (c, in_class) {
            ('\\', _) => escape(chars.next()?, in_class, &mut out)?,
            ('[', false) => {
                in_class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // The regex crate has no empty class.
                if chars.peek() == Some(&']') {
                    return None;
                }
            }
            (']', true) => {
                in_class = false;
                out.push(']');
            }
            // Only the regex crate has nested classes, differences and intersections.
            ('[' | '&' | '~', true) => out.extend(['\\', c]),
            ('-', true) if chars.peek() == Some(&'-') => return None,
            ('.', false) => out.push_str(ANY),
            // The regex crate has no look-around.
            ('(', false) if chars.peek() == Some(&'?') => {
                chars.next();
                chars.next_if_eq(&':')?;
                out.push_str("(?:");
            }
            (c, _) => out.push(c),
        }
    }
    Some(out)
}

fn escape(escaped: char, in_class: bool, out: &mut String) -> Option<()> {
    let class = match escaped {
        'd' | 'D' => DIGITS,
        'w' | 'W' => WORD,
        's' | 'S' => WHITE,
        'b' if !in_class => {
            out.push_str(r"(?-u:\b)");
            return Some(());
        }
        'n' | 'r' | 't' | 'v' | 'f' | 'x' | 'u' => {
            out.extend(['\\', escaped]);
            return Some(());
        }
        // Back references, code points by name or by letter.
        other if other.is_alphanumeric() => return None,
        other if other.is_ascii_punctuation() && !matches!(other, '<' | '>') => {
            out.extend(['\\', other]);
            return Some(());
        }
        other => {
            out.push(other);
            return Some(());
        }
    };
    match (escaped.is_uppercase(), in_class) {
        (true, _) => out.extend(["[^", class, "]"]),
        (false, true) => out.push_str(class),
        (false, false) => out.extend(["[", class, "]"]),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, text: &str) -> bool {
        Pattern::parse(pattern, None).expect(pattern).is_match(text)
    }

    #[test]
    fn patterns_mean_what_they_mean_to_ecma_262() {
        for (pattern, fitting, other) in [
            (r"^\d$", "7", "\u{663}"),
            (r"^\D$", "\u{663}", "7"),
            (r"^\w$", "_", "é"),
            (r"^[\w-]+$", "a-b", "é"),
            (r"^\S$", "\u{85}", "\u{FEFF}"),
            (r"^[^\s]$", "\u{180E}", "\u{2003}"),
            (r"^\s$", "\u{2028}", "\u{200B}"),
            (r"^.$", "\u{85}", "\u{2029}"),
            (r"^a$", "a", "a\n"),
            (r"^[[&&~]+$", "[&~", "b"),
            (r"^\<\/\-\.$", "</-.", "</-x"),
            (r"^(?:a|b\b) ?c$", "b c", "bc"),
        ] {
            assert!(fits(pattern, fitting) && !fits(pattern, other), "{pattern}");
        }
    }

    #[test]
    fn what_cannot_be_translated_is_refused() {
        for pattern in [r"^P(?!$)", "(?<=a)b", r"(a)\1", r"\p{L}", "[]", "[^]", "[a--b]", "a\\"] {
            assert!(Pattern::parse(pattern, None).is_none(), "{pattern}");
        }
        for pattern in crate::pattern::ALL {
            let read = Pattern::parse(pattern.text, None).expect(pattern.text);
            assert!(compile(&read.translated).is_some(), "{}", pattern.text);
        }
    }
}
