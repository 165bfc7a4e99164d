//! Integers with bounds in requests of programs.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Number;

/// An integer from `LEAST` to `MOST`, which may be written as `3.0`. Out of bounds is an error.
#[derive(Debug, Clone, Copy)]
pub struct Whole<const LEAST: u64, const MOST: u64>(u64);

impl<const LEAST: u64, const MOST: u64> Whole<LEAST, MOST> {
    /// The number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Whole<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Number::deserialize(deserializer)?;
        let integer = number.as_u64().or_else(|| whole_float(number.as_f64()?));
        match integer.filter(|integer| (LEAST..=MOST).contains(integer)) {
            Some(integer) => Ok(Whole(integer)),
            None => Err(D::Error::custom(format!(
                "it is {number}; it must be {}",
                match MOST {
                    u64::MAX => format!("a whole number of at least {LEAST}"),
                    _ => format!("a whole number from {LEAST} to {MOST}"),
                }
            ))),
        }
    }
}

/// A float without a fraction: some clients write all numbers as floats.
fn whole_float(float: f64) -> Option<u64> {
    // Up to here a float represents every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole and within bounds"
    )]
    (float.fract() == 0.0 && (0.0..=EXACT).contains(&float)).then_some(float as u64)
}

impl<const LEAST: u64, const MOST: u64> JsonSchema for Whole<LEAST, MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Whole{LEAST}To{MOST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        match MOST {
            // Many clients cannot represent the maximum of u64.
            u64::MAX => json_schema!({"type": "integer", "minimum": LEAST}),
            _ => json_schema!({"type": "integer", "minimum": LEAST, "maximum": MOST}),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::Whole;

    #[test]
    fn a_number_out_of_bounds_is_refused_with_the_bounds() {
        for (written, read) in [(json!(1), 1), (json!(9), 9), (json!(3.0), 3), (json!(1e0), 1)] {
            assert_eq!(from_value::<Whole<1, 9>>(written.clone()).unwrap().get(), read, "{written}");
        }
        for written in
            [json!(0), json!(10), json!(-1), json!(1.5), json!(1e300), json!(u64::MAX), json!(-1e300)]
        {
            let message = from_value::<Whole<1, 9>>(written.clone()).unwrap_err().to_string();
            assert!(message.ends_with("; it must be a whole number from 1 to 9"), "{written}: {message}");
        }
        for written in [json!("3"), json!(true), json!([3]), Value::Null] {
            let message = from_value::<Whole<1, 9>>(written.clone()).unwrap_err().to_string();
            assert!(message.starts_with("invalid type"), "{written}: {message}");
        }
        assert_eq!(from_value::<Whole<0, { u64::MAX }>>(json!(u64::MAX)).unwrap().get(), u64::MAX);
        assert!(
            from_value::<Whole<1, { u64::MAX }>>(json!(0)).unwrap_err().to_string().contains("of at least 1")
        );
    }
}
