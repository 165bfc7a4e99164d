//! Whose messages they are: operators of the server, as participants of the manifest.

use std::collections::BTreeMap;

use quorate_kernel::conversation::Participant;
use quorate_protocol::Name;

/// The key of a participant's `meta` that names its operator.
const OPERATOR_KEY: &str = "operatorId";

/// Who posts as whom.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct AuthorMap {
    /// The operator of each participant, where it has one.
    operators: BTreeMap<Name, Option<String>>,
    /// Whom everybody else posts as.
    default_operator: Option<String>,
    /// The participant behind each operator.
    participants_by_operator: BTreeMap<String, Name>,
}

/// Whose a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Author {
    /// A participant, or whoever else it is.
    pub(super) name: Name,
    /// Whether the marks beside the message can be ours.
    pub(super) is_trusted: bool,
}

impl AuthorMap {
    /// The participants, and whom those without an operator of their own post as.
    pub(super) fn new(participants: &[Participant], others: Option<&str>) -> Self {
        let operator = |one: &Participant| one.meta_text(OPERATOR_KEY).map(str::to_owned);
        let operators: BTreeMap<Name, Option<String>> =
            participants.iter().map(|one| (one.id.clone(), operator(one))).collect();
        let mut participants_by_operator = BTreeMap::new();
        for participant in participants {
            if let Some(operator) = operator(participant) {
                participants_by_operator.entry(operator).or_insert_with(|| participant.id.clone());
            }
        }
        // Where only one participant can be meant, it is.
        let mut without = participants.iter().filter(|one| operator(one).is_none());
        if let (Some(others), Some(only), None) = (others, without.next(), without.next()) {
            participants_by_operator.entry(others.to_owned()).or_insert_with(|| only.id.clone());
        }
        AuthorMap { operators, default_operator: others.map(str::to_owned), participants_by_operator }
    }

    /// The operator that somebody's turns are posted as; the token's own where there is none.
    pub(super) fn operator_for(&self, name: &str) -> Option<&str> {
        self.operators.get(name).and_then(Option::as_deref).or(self.default_operator.as_deref())
    }

    /// Whose a message is, given what the server calls its author, and whose it claims to be.
    pub(super) fn resolve(&self, authors: &[String], claimed: Option<&Name>) -> Author {
        let any = |fits: &dyn Fn(&str) -> bool| authors.iter().any(|author| fits(author));
        if let Some(claimed) = claimed {
            // A server that has participants of its own may call ours by its id.
            let by_id = any(&|author| *author == **claimed);
            let holds = by_id
                || match self.operator_for(claimed) {
                    Some(operator) => any(&|author| author == operator),
                    // We do not know whom the token posts as, but it is none of the participants' operators.
                    None => !any(&|author| self.participants_by_operator.contains_key(author)),
                };
            if holds {
                return Author { name: claimed.clone(), is_trusted: true };
            }
        }
        let name = authors.iter().find_map(|author| self.participants_by_operator.get(author).cloned());
        let name = name.or_else(|| authors.first().map(|author| Name::from(author.as_str())));
        Author { name: name.unwrap_or_default(), is_trusted: false }
    }
}

#[cfg(test)]
mod tests {
    use quorate_kernel::conversation::Participant;
    use quorate_protocol::Name;
    use serde_json::json;

    use super::AuthorMap;

    fn one(id: &str, operator: Option<&str>) -> Participant {
        let mut one = Participant { id: id.into(), ..Participant::default() };
        one.meta.extend(operator.map(|operator| ("operatorId".to_owned(), json!(operator))));
        one
    }

    #[test]
    fn authors_are_participants_by_operator_or_by_id() {
        let people = AuthorMap::new(&[one("reviewer", Some("op_7")), one("scribe", None)], Some("op_bot"));
        let name = |author: &str| people.resolve(&[author.to_owned()], None).name.to_string();
        assert_eq!(
            [name("op_7"), name("scribe"), name("op_bot"), name("u_1")],
            ["reviewer", "scribe", "scribe", "u_1"]
        );
        assert_eq!(people.operator_for("reviewer"), Some("op_7"));
        assert_eq!(people.operator_for("somebody"), Some("op_bot"));
    }

    #[test]
    fn a_claim_holds_only_for_whom_its_author_posts() {
        let people =
            AuthorMap::new(&[one("reviewer", Some("op_7")), one("a", None), one("b", None)], Some("op_bot"));
        let author =
            |author: &str, claimed: &str| people.resolve(&[author.to_owned()], Some(&Name::from(claimed)));
        assert!(author("op_bot", "b").is_trusted);
        let forged = author("u_1", "reviewer");
        assert_eq!((forged.name.as_ref(), forged.is_trusted), ("u_1", false));
        assert!(!author("op_bot", "reviewer").is_trusted && author("reviewer", "reviewer").is_trusted);
        // A server that has names of its own for operators, and says both.
        let both = ["ada".to_owned(), "op_7".to_owned()];
        assert!(people.resolve(&both, Some(&"reviewer".into())).is_trusted);
        assert_eq!(&*people.resolve(&both, None).name, "reviewer");
        let anonymous = AuthorMap::new(&[one("reviewer", Some("op_7")), one("a", None)], None);
        assert!(anonymous.resolve(&["token".to_owned()], Some(&"a".into())).is_trusted);
        assert!(!anonymous.resolve(&["op_7".to_owned()], Some(&"a".into())).is_trusted);
    }
}
