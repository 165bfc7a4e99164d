//! Detects misspelt keys: another case or word separator, plural for singular, or one or two wrong letters.
//! [`nearest`] is more lenient, but its result is only a suggestion; a key that [`meant_key`] matches is refused.

/// The most similar known word, if any is close enough.
pub fn nearest<'w>(word: &str, among: &[&'w str]) -> Option<&'w str> {
    let written = word.to_lowercase().replace('-', "_");
    let likeness = |known: &str| strsim::jaro_winkler(&written, known);
    let best = among.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.8).then_some(best)
}

/// A help that suggests the most similar known word, else another help.
pub fn meant_or(word: &str, known: &[&str], otherwise: impl FnOnce() -> String) -> String {
    nearest(word, known).map_or_else(otherwise, |near| format!("did you mean `{near}`?"))
}

/// The known key that `written` probably misspells.
///
/// Case, separators and plural may always differ. Words of up to two letters allow no other edit, words of up to five
/// letters one, longer words two: `tools` does not match `hooks`.
pub fn meant_key<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    if known.contains(&written) {
        return None;
    }
    let written = Forms::of(written);
    let candidates = known.iter().filter_map(|known| Some((written.edits_from(&Forms::of(known))?, *known)));
    candidates.min_by_key(|(edits, _)| *edits).map(|(_, known)| known)
}

/// A word in lower case without separators, and its singular.
struct Forms {
    plain: String,
    singular: String,
}

impl Forms {
    fn of(word: &str) -> Forms {
        let plain: String =
            word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        let singular = match (plain.strip_suffix("ies"), plain.strip_suffix('s')) {
            (Some(stem), _) => format!("{stem}y"),
            (None, Some(stem)) => stem.to_owned(),
            (None, None) => plain.clone(),
        };
        Forms { plain, singular }
    }

    /// The number of edits, if small enough for a misspelling.
    fn edits_from(&self, known: &Forms) -> Option<usize> {
        let allowed = match self.plain.chars().count().min(known.plain.chars().count()) {
            0..=2 => 0,
            3..=5 => 1,
            _ => 2,
        };
        let edits = strsim::damerau_levenshtein(&self.plain, &known.plain);
        (edits <= allowed || self.singular == known.singular).then_some(edits)
    }
}

#[cfg(test)]
mod tests {
    use super::meant_key;

    const KNOWN: [&str; 9] =
        ["id", "role", "state", "hooks", "effectors", "displayName", "capabilities", "locks", "meta"];

    #[test]
    fn a_misspelling_differs_from_another_word() {
        for (written, meant) in [
            ("effector", "effectors"),
            ("Effectors", "effectors"),
            ("efectrs", "effectors"),
            ("displayname", "displayName"),
            ("display_name", "displayName"),
            ("display-name", "displayName"),
            ("DISPLAY_NAMES", "displayName"),
            ("dipslayName", "displayName"),
            ("rol", "role"),
            ("roel", "role"),
            ("Roles", "role"),
            ("ID", "id"),
            ("ids", "id"),
            ("_id", "id"),
            ("capability", "capabilities"),
            ("lock", "locks"),
            ("hook", "hooks"),
        ] {
            assert_eq!(meant_key(written, &KNOWN), Some(meant), "{written}");
        }
        for other in ["id", "role", "name", "title", "tools", "it", "i", "", "notes", "rules", "displays"] {
            assert_eq!(meant_key(other, &KNOWN), None, "{other}");
        }
    }

    #[test]
    fn the_nearest_key_wins() {
        assert_eq!(meant_key("operatorid", &["operator", "operatorId"]), Some("operatorId"));
        assert_eq!(meant_key("operators", &["operator", "operatorId"]), Some("operator"));
    }
}
