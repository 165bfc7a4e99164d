//! Foreign text as a label: shortened, on one line, with every character that Mermaid might interpret as its number.

use super::super::super::super::paint::one_line;
use super::super::super::super::wording::truncate;

/// The longest label, in characters.
const TEXT: usize = 72;

/// The label. Letters and digits of any script, spaces, full stops and commas stay; every other character becomes
/// `#number;`, which Mermaid decodes before it parses anything.
pub(super) fn label(text: &str) -> String {
    let text = truncate(&one_line(text), TEXT);
    let words = text.split(' ').map(word).collect::<Vec<_>>().join(" ");
    // Some diagrams reject an empty label.
    if words.is_empty() { "#160;".to_owned() } else { words }
}

fn word(word: &str) -> String {
    // This word ends blocks of sequence diagrams and breaks flowcharts.
    let keyword = word.to_ascii_lowercase().contains("end");
    let mut out = String::with_capacity(word.len());
    for c in word.chars() {
        match c {
            'n' | 'N' if keyword => number(c, &mut out),
            c if c.is_alphanumeric() || matches!(c, '.' | ',' | '…') => out.push(c),
            c => number(c, &mut out),
        }
    }
    out
}

fn number(c: char, out: &mut String) {
    out.push_str(&format!("#{};", u32::from(c)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(label(text), expected);
    }

    #[test]
    fn nothing_ends_a_label_or_a_line() {
        check("a\"]\n--> b", "a#34;#93; #45;#45;#62; b");
        check("x; y %% z", "x#59; y #37;#37; z");
        check("the End, <br>", "the E#110;d, #60;br#62;");
        check("`#quot;` 2.5", "#96;#35;quot#59;#96; 2.5");
        check("日本 é", "日本 é");
        check("  ", "#160;");
    }

    #[test]
    fn a_colon_cannot_stand_behind_a_word_that_renderers_look_for() {
        // Mermaid takes the last semicolon from lines in which `style` comes before a literal colon and a number.
        check("style: #", "style#58; #35;");
    }
}
