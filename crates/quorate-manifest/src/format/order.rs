//! The canonical order of keys of one kind of file.

/// The canonical order of keys, for each mapping that has one. Other mappings keep their order; unknown keys come after
/// the known ones, in file order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    mappings: &'static [(&'static str, &'static [&'static str])],
}

/// One step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathSegment<'t> {
    /// The value of a key.
    Key(&'t str),
    /// Any item of a list.
    Item,
}

impl Order {
    /// Makes an order from paths with keys. A path has the keys to a mapping, joined by dots; `[]` after a key is any item
    /// of its list, `*` is any key; the root's path is empty. The first matching path applies.
    pub const fn new(mappings: &'static [(&'static str, &'static [&'static str])]) -> Order {
        Order { mappings }
    }

    /// The ordered keys of a mapping; `None` for a mapping that keeps its order.
    pub(super) fn keys(&self, path: &[PathSegment<'_>]) -> Option<&'static [&'static str]> {
        self.mappings.iter().find(|(pattern, _)| matches_path(pattern, path)).map(|(_, keys)| *keys)
    }
}

fn matches_path(pattern: &str, path: &[PathSegment<'_>]) -> bool {
    let mut path = path.iter();
    for part in pattern.split('.').filter(|part| !part.is_empty()) {
        let key = part.trim_end_matches("[]");
        let items = (part.len() - key.len()) / 2;
        let step = if key.is_empty() { Some(true) } else { path.next().map(|step| matches_step(*step, key)) };
        let fine = step == Some(true) && (0..items).all(|_| path.next() == Some(&PathSegment::Item));
        if !fine {
            return false;
        }
    }
    path.next().is_none()
}

fn matches_step(step: PathSegment<'_>, key: &str) -> bool {
    matches!(step, PathSegment::Key(written) if key == "*" || key == written)
}

#[cfg(test)]
mod tests {
    use super::PathSegment::{Item, Key};
    use super::*;

    #[test]
    fn paths_lead_to_mappings() {
        let cases: [(&str, &[PathSegment<'_>], bool); 10] = [
            ("", &[], true),
            ("", &[Key("a")], false),
            ("a", &[Key("a")], true),
            ("a", &[Key("b")], false),
            ("a.b", &[Key("a"), Key("b")], true),
            ("a[]", &[Key("a"), Item], true),
            ("a[]", &[Key("a")], false),
            ("a[][].b", &[Key("a"), Item, Item, Key("b")], true),
            ("*.b", &[Key("x.y"), Key("b")], true),
            ("[]", &[Item], true),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(matches_path(pattern, path), expected, "{pattern} {path:?}");
        }
    }
}
