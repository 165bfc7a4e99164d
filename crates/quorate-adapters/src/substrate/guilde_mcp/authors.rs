//! Maps operators of the server to participants of the manifest.

use std::collections::BTreeMap;

use quorate_kernel::conversation::Participant;
use quorate_protocol::Name;

/// The `meta` key of a participant that names its operator.
const OPERATOR_KEY: &str = "operatorId";
/// The author of a message for which the server names none (K17).
pub(super) const SYSTEM: &str = "system";

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct AuthorMap {
    /// The operator of each participant; `None` for the default.
    operators: BTreeMap<Name, Option<String>>,
    /// The operator that other participants post as.
    default_operator: Option<String>,
    participants_by_operator: BTreeMap<String, Name>,
}

/// The author of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Author {
    /// A participant's id, or the server's name of another author.
    pub(super) name: Name,
    /// Whether the metadata of the message may be Quorate's.
    pub(super) is_trusted: bool,
}

impl AuthorMap {
    /// The participants, and the operator of those without one of their own.
    pub(super) fn new(participants: &[Participant], default: Option<&str>) -> Self {
        let operator = |participant: &Participant| participant.meta_text(OPERATOR_KEY).map(str::to_owned);
        let operators: BTreeMap<Name, Option<String>> =
            participants.iter().map(|participant| (participant.id.clone(), operator(participant))).collect();
        let mut participants_by_operator = BTreeMap::new();
        for participant in participants {
            if let Some(operator) = operator(participant) {
                participants_by_operator.entry(operator).or_insert_with(|| participant.id.clone());
            }
        }
        // If only one participant lacks an operator, the default operator is that participant.
        let mut without = participants.iter().filter(|participant| operator(participant).is_none());
        if let (Some(default), Some(only), None) = (default, without.next(), without.next()) {
            participants_by_operator.entry(default.to_owned()).or_insert_with(|| only.id.clone());
        }
        AuthorMap { operators, default_operator: default.map(str::to_owned), participants_by_operator }
    }

    /// The operator that a participant's turns are posted as; `None` means the token's own.
    pub(super) fn operator_for(&self, name: &str) -> Option<&str> {
        self.operators.get(name).and_then(Option::as_deref).or(self.default_operator.as_deref())
    }

    /// The author of a message, by the server's names for it and the participant that its metadata claims.
    pub(super) fn resolve(&self, authors: &[String], claimed: Option<&Name>) -> Author {
        // Nothing supports a claim without an author.
        if authors.is_empty() {
            return Author { name: SYSTEM.into(), is_trusted: false };
        }
        let any = |fits: &dyn Fn(&str) -> bool| authors.iter().any(|author| fits(author));
        if let Some(claimed) = claimed {
            // A server with participants of its own may use the participant's id.
            let by_id = any(&|author| *author == **claimed);
            let holds = by_id
                || match self.operator_for(claimed) {
                    Some(operator) => any(&|author| author == operator),
                    // The operator of the token is unknown, but it is not an operator of a participant.
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
        let mut participant = Participant { id: id.into(), ..Participant::default() };
        participant.meta.extend(operator.map(|operator| ("operatorId".to_owned(), json!(operator))));
        participant
    }

    #[test]
    fn authors_are_participants_by_operator_or_by_id() {
        let authors = AuthorMap::new(&[one("reviewer", Some("op_7")), one("scribe", None)], Some("op_bot"));
        let name = |author: &str| authors.resolve(&[author.to_owned()], None).name.to_string();
        assert_eq!(
            [name("op_7"), name("scribe"), name("op_bot"), name("u_1")],
            ["reviewer", "scribe", "scribe", "u_1"]
        );
        assert_eq!(authors.operator_for("reviewer"), Some("op_7"));
        assert_eq!(authors.operator_for("somebody"), Some("op_bot"));
        // K17
        let system = authors.resolve(&[], Some(&"scribe".into()));
        assert_eq!((&*system.name, system.is_trusted), ("system", false));
    }

    #[test]
    fn a_claim_holds_only_for_whom_its_author_posts() {
        let authors =
            AuthorMap::new(&[one("reviewer", Some("op_7")), one("a", None), one("b", None)], Some("op_bot"));
        let author =
            |author: &str, claimed: &str| authors.resolve(&[author.to_owned()], Some(&Name::from(claimed)));
        assert!(author("op_bot", "b").is_trusted);
        let forged = author("u_1", "reviewer");
        assert_eq!((forged.name.as_ref(), forged.is_trusted), ("u_1", false));
        assert!(!author("op_bot", "reviewer").is_trusted && author("reviewer", "reviewer").is_trusted);
        // A server may return an operator's display name as well as its id.
        let both = ["ada".to_owned(), "op_7".to_owned()];
        assert!(authors.resolve(&both, Some(&"reviewer".into())).is_trusted);
        assert_eq!(&*authors.resolve(&both, None).name, "reviewer");
        let anonymous = AuthorMap::new(&[one("reviewer", Some("op_7")), one("a", None)], None);
        assert!(anonymous.resolve(&["token".to_owned()], Some(&"a".into())).is_trusted);
        assert!(!anonymous.resolve(&["op_7".to_owned()], Some(&"a".into())).is_trusted);
    }
}
