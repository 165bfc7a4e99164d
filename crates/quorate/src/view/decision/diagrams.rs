//! Mermaid diagrams. Node ids are generated; foreign text occurs only in labels, where every character that Mermaid might
//! interpret is written as its number, so that no member's text ends a label, a line or the diagram.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Assessment;
use crate::service::convene::report::{Decision, Member};
use crate::view::layout::{one_line, truncate};
use crate::view::wording::amount;

/// The most members drawn; renderers fail on much larger diagrams.
pub(super) const MEMBERS: usize = 24;

pub(super) const CLASSES: &str = "  classDef grave fill:#f8d7da,stroke:#b02a37,color:#000\n  classDef fair fill:#fff3cd,stroke:#997404,color:#000\n  classDef calm fill:#e2e3e5,stroke:#6c757d,color:#000\n  classDef gone fill:#ffffff,stroke:#b02a37,color:#000,stroke-dasharray:4\n";

pub(super) fn class(severity: u64) -> &'static str {
    match severity {
        9.. => "grave",
        5..=8 => "fair",
        _ => "calm",
    }
}

/// The rules, and the fragments that they made of members' advice.
pub(super) fn guidance(decision: &Decision) -> String {
    let asked = decision.asked();
    let number = asked.len();
    if asked.is_empty() {
        return String::new();
    }
    let mut flow = "flowchart LR\n".to_owned();
    let emits = |id: &str| decision.fragments.iter().flatten().any(|fragment| fragment.member == id);
    // Members with a fragment are drawn first.
    let (emitting, idle): (Vec<&Member>, Vec<&Member>) =
        asked.into_iter().partition(|member| emits(&member.id));
    let drawn: Vec<_> = emitting.into_iter().chain(idle).take(MEMBERS).collect();
    let mut places = BTreeMap::new();
    for (at, member) in drawn.iter().enumerate() {
        places.insert(&*member.id, at);
        let (text, class) = match Assessment::of(member) {
            Some(assessment) => {
                (format!("{}: severity {}", member.id, assessment.severity), class(assessment.severity))
            }
            None => (format!("{}: {}", member.id, member.status()), "gone"),
        };
        let _ = writeln!(flow, "  m{at}[\"{}\"]:::{class}", label(&text));
    }
    for (at, fragment) in decision.fragments.iter().flatten().enumerate() {
        let Some(member) = places.get(&*fragment.member) else { continue };
        let kind = decision.rules.iter().find(|rule| rule.id == fragment.rule).map_or("", |rule| &rule.kind);
        let rule = label(&format!("{} ({kind})", fragment.rule));
        let text = label(&format!("priority {}: {}", fragment.priority, fragment.text));
        let _ = writeln!(flow, "  f{at}([\"{text}\"])\n  m{member} -->|\"{rule}\"| f{at}");
    }
    for (at, violation) in decision.violations.iter().enumerate() {
        let Some(member) = violation.member.as_deref().and_then(|id| places.get(id)) else { continue };
        let text = label(&format!("refused: {}", violation.locked.as_deref().unwrap_or(&violation.code)));
        let _ = writeln!(flow, "  x{at}([\"{text}\"]):::gone\n  m{member} -.-x x{at}");
    }
    add_rest(&mut flow, number - drawn.len(), "more member");
    flow + CLASSES
}

/// Adds a node with the number of members that are not drawn.
pub(super) fn add_rest(flow: &mut String, more: usize, noun: &str) {
    if more > 0 {
        let _ = writeln!(flow, "  more[\"and {}\"]:::calm", amount(more as u64, noun));
    }
}

/// The longest label, in characters.
const LABEL_TEXT: usize = 72;

/// The label. Letters and digits of any script, spaces, full stops and commas stay; every other character becomes
/// `#number;`, which Mermaid decodes before it parses anything.
pub(super) fn label(text: &str) -> String {
    let text = truncate(&one_line(text), LABEL_TEXT);
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
