//! The escaper of all templates. It shows control and direction characters, so that no text can look like another.

use std::fmt::{self, Write};

use askama::filters::{Escaper, Html};
use quorate_diagnostics::invisible::escape_invisible_except;

/// The escaper of all templates.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Visible;

impl Escaper for Visible {
    fn write_escaped_str<W: Write>(&self, dest: W, string: &str) -> fmt::Result {
        Html.write_escaped_str(dest, &escape_invisible_except(string, |c| matches!(c, '\n' | '\t')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_text_brings_stays_text() {
        let shown = |text: &str| {
            let mut html = String::new();
            Visible.write_escaped_str(&mut html, text).unwrap();
            html
        };
        assert_eq!(shown("<b onclick='x'>&\"</b>"), "&#60;b onclick=&#39;x&#39;&#62;&#38;&#34;&#60;/b&#62;");
        assert_eq!(shown("a\tb\nc"), "a\tb\nc");
        for hostile in ["a\u{202e}b", "a\u{1b}[31mb", "a\u{0}b", "a\u{200b}b"] {
            let html = shown(hostile);
            assert!(html.starts_with('a') && html.ends_with('b') && html.len() > hostile.len(), "{html}");
            assert!(html.chars().all(|c| !c.is_control()), "{html:?}");
        }
    }
}
