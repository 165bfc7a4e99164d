//! What refusals say to a client: it has parameters where the command line has flags.

use serde_json::Value;

/// The flags of the command line that tools take as parameters, and what these are called.
const PARAMETERS: [(&str, &str); 22] = [
    ("--class", "class"),
    ("--conversation", "conversation"),
    ("--dry-run", "dry_run"),
    ("--executor", "executor"),
    ("--force", "force"),
    ("--jobs", "jobs"),
    ("--key", "keys"),
    ("--made-by", "made_by"),
    ("--max-calls", "max_calls"),
    ("--pattern", "pattern"),
    ("--phase", "phase"),
    ("--policy", "policy"),
    ("--proposal", "proposal"),
    ("--request", "request"),
    ("--rounds", "rounds"),
    ("--sentinel-first", "sentinel_first"),
    ("--since", "since"),
    ("--tier", "tier"),
    ("--timeout", "timeout"),
    ("--topic", "topic"),
    ("--trigger", "trigger"),
    ("--trying", "trying"),
];

/// Flags that a client has nothing for, and whose matter it is then.
const SERVER_SETTINGS: [(&str, &str); 1] = [("--ledger", "`[ledger] path` in the server's quorate.toml")];

/// A text in which parameters stand in the place of flags. A command that is quoted, as in `quorate show --full`, stays.
pub(super) fn with_parameter_names(text: &str) -> String {
    text.split_inclusive('`').fold((String::new(), false), rewrite_part).0
}

/// The next part of a text between two backticks, and whether it is within them.
fn rewrite_part((mut out, within): (String, bool), part: &str) -> (String, bool) {
    if within && part.starts_with("quorate ") {
        out.push_str(part);
        return (out, false);
    }
    let operators = SERVER_SETTINGS.iter().find(|(flag, _)| within && strip_flag(part, flag).is_some());
    match operators {
        Some((_, place)) => {
            out.truncate(out.len() - 1);
            out.push_str(place);
        }
        None => out.push_str(&replace_flags(part)),
    }
    (out, within != part.ends_with('`'))
}

/// A part without flags.
fn replace_flags(part: &str) -> String {
    let mut out = String::new();
    let mut rest = part;
    while let Some(at) = rest.find("--") {
        let (before, flag) = rest.split_at(at);
        out.push_str(before);
        let known =
            PARAMETERS.iter().find_map(|(name, parameter)| Some((*parameter, strip_flag(flag, name)?)));
        match known.filter(|_| !before.ends_with(|last: char| last.is_alphanumeric() || last == '-')) {
            Some((parameter, behind)) => {
                out.push_str(parameter);
                rest = behind;
            }
            None => {
                let hyphens = flag.len() - flag.trim_start_matches('-').len();
                out.push_str(&flag[..hyphens]);
                rest = &flag[hyphens..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// What stands behind a flag and its placeholder, as in `--rounds N`.
fn strip_flag<'a>(text: &'a str, flag: &str) -> Option<&'a str> {
    let behind = text.strip_prefix(flag)?;
    if behind.starts_with(|next: char| next.is_alphanumeric() || next == '-') {
        return None;
    }
    let word = behind.strip_prefix(' ').unwrap_or_default();
    let end = word.find(|c: char| !c.is_ascii_uppercase()).unwrap_or(word.len());
    let ends = word[end..].starts_with(['`', ']', '\n']) || end == word.len();
    Some(if end > 0 && ends { &word[end..] } else { behind })
}

/// The same in every text of a value.
pub(super) fn with_parameter_names_json(value: &mut Value) {
    match value {
        Value::String(text) => *text = with_parameter_names(text),
        Value::Array(all) => all.iter_mut().for_each(with_parameter_names_json),
        Value::Object(all) => all.values_mut().for_each(with_parameter_names_json),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_stand_in_the_place_of_flags() {
        for (text, told_as) in [
            (
                "it takes `--conversation FILE` [--phase PHASE] [--sentinel-first]",
                "it takes `conversation` [phase] [sentinel_first]",
            ),
            ("`--rounds` is for peer mode", "`rounds` is for peer mode"),
            ("`--made-by stan`: no operator", "`made_by stan`: no operator"),
            ("give it with `--key`", "give it with `keys`"),
            ("raise --max-calls, or wait", "raise max_calls, or wait"),
            (
                "name a ledger with `--ledger`",
                "name a ledger with `[ledger] path` in the server's quorate.toml",
            ),
            ("or say `--ledger PATH`!", "or say `[ledger] path` in the server's quorate.toml!"),
            ("see `quorate show r1 --since 3` or `--since`", "see `quorate show r1 --since 3` or `since`"),
            (
                "the server has `--read-only` and --topical and a--topic and ---topic",
                "the server has `--read-only` and --topical and a--topic and ---topic",
            ),
            ("start it with `--manifest PATH`", "start it with `--manifest PATH`"),
        ] {
            assert_eq!(with_parameter_names(text), told_as);
        }
    }
}
