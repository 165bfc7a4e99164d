//! Names that look alike.

use super::character::look;
use super::fold::fold;

/// What a name looks like, by its letters and digits: names with the same look are easily confused (`Ada`, `\u{430}da`, `a-da`).
pub fn look_of_name(name: &str) -> String {
    look(&fold(name))
}

#[cfg(test)]
mod tests {
    use super::look_of_name;

    #[test]
    fn names_that_are_easily_confused_look_alike() {
        for alike in ["ada", "ADA", "\u{430}da", "a\u{200b}da", "\u{ff41}da", "\u{e1}da", "a_da"] {
            assert_eq!(look_of_name(alike), look_of_name("Ada"), "{alike}");
        }
        for other in ["adam", "bo", "", "eve", "-"] {
            assert_ne!(look_of_name(other), look_of_name("Ada"), "{other}");
        }
    }
}
