//! Values of statements and rows.

/// A value of a statement or a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// A 64-bit integer.
    Int(Option<i64>),
    Text(Option<String>),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Int(Some(value))
    }
}

/// A number of records or bytes, which is below 2^63.
impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Value::Int(Some(i64::try_from(value).unwrap_or(i64::MAX)))
    }
}

impl From<Option<i64>> for Value {
    fn from(value: Option<i64>) -> Self {
        Value::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(Some(value.to_owned()))
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::Text(Some(value))
    }
}

impl From<Option<String>> for Value {
    fn from(value: Option<String>) -> Self {
        Value::Text(value)
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Self {
        Value::Bytes(value)
    }
}
