//! Whether a record's data is parsable, without building a value: the same parser with the same limits as other readers
//! use, at a fraction of the cost.

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Reads a text as readers of records do.
///
/// # Errors
/// When it is no JSON object, or nests too deep for the parser.
pub(super) fn check_object(text: &str) -> Result<(), serde_json::Error> {
    if !text.starts_with('{') {
        return Err(Error::custom("it is no object"));
    }
    serde_json::from_str::<Skimmed>(text).map(drop)
}

/// A value that was read and dropped. [`IgnoredAny`] would let any depth pass.
struct Skimmed;

impl<'de> Deserialize<'de> for Skimmed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Skimmed)
    }
}

impl<'de> Visitor<'de> for Skimmed {
    type Value = Skimmed;

    fn expecting(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
        to.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_unit<E: Error>(self) -> Result<Skimmed, E> {
        Ok(Skimmed)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Skimmed, A::Error> {
        while items.next_element::<Skimmed>()?.is_some() {}
        Ok(Skimmed)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Skimmed, A::Error> {
        // A key is a text and has no depth.
        while fields.next_entry::<IgnoredAny, Skimmed>()?.is_some() {}
        Ok(Skimmed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::check_object;

    #[test]
    fn what_is_skimmed_is_what_can_be_read() {
        let nested = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        let mut texts: Vec<String> = (120..132).map(nested).collect();
        texts.push(format!("{{\"a\":{}{}}}", "[".repeat(126), "]".repeat(126)));
        texts.push(format!("{{\"a\":{}{}}}", "[".repeat(127), "]".repeat(127)));
        let others = [
            "",
            "[]",
            "3",
            "{}",
            "{\"a\":1e999}",
            "{\"a\":\"\\ud800\"}",
            "{\"a\":01}",
            "{\"a\":[1,-2,0.5,null,true,\"\\n\"]}",
            "{} {}",
        ];
        texts.extend(others.map(str::to_owned));
        for text in texts {
            let read = serde_json::from_str::<Map<String, Value>>(&text).is_ok();
            assert_eq!(check_object(&text).is_ok(), read, "{text}");
        }
    }
}
