//! Reads a result: `structuredContent`, or one block of text that is JSON.

use quorate_protocol::Json;
use rmcp::model::{CallToolResult, ContentBlock};

use super::error::excerpt;

/// Why a result has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResultError {
    /// The tool reports an error, with this text.
    Failed(String),
    /// It cannot be read; the text is a predicate.
    Malformed(String),
}

pub(super) fn parse(result: CallToolResult) -> Result<Json, ResultError> {
    let texts: Vec<&str> = result.content.iter().filter_map(text).collect();
    if result.is_error == Some(true) {
        let message = match (texts.is_empty(), &result.structured_content) {
            (true, Some(structured)) => structured.to_string(),
            (true, None) => "it does not say why".to_owned(),
            (false, _) => texts.join(" "),
        };
        return Err(ResultError::Failed(excerpt(&message)));
    }
    match (result.structured_content.filter(|value| !value.is_null()), &texts[..]) {
        (Some(value), _) => Ok(value),
        (None, [text]) => serde_json::from_str(text)
            .map_err(|_| ResultError::Malformed(format!("is no JSON: {}", excerpt(text)))),
        (None, []) => Err(ResultError::Malformed("is empty".to_owned())),
        (None, many) => {
            Err(ResultError::Malformed(format!("is {} texts where one was expected", many.len())))
        }
    }
}

fn text(block: &ContentBlock) -> Option<&str> {
    block.as_text().map(|text| text.text.as_str())
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolResult, ContentBlock};
    use serde_json::json;

    use super::{ResultError, parse};

    #[test]
    fn structured_content_and_one_text_of_json_are_read_alike() {
        let value = json!({"id": "m1"});
        assert_eq!(parse(CallToolResult::structured(value.clone())), Ok(value.clone()));
        let text = ContentBlock::text(value.to_string());
        assert_eq!(parse(CallToolResult::success(vec![text])), Ok(value));
    }

    #[test]
    fn failures_and_nonsense_are_distinguished() {
        let outcome = |result| match parse(result) {
            Err(ResultError::Failed(outcome)) => format!("failed {outcome}"),
            Err(ResultError::Malformed(problem)) => format!("nonsense {problem}"),
            Ok(value) => value.to_string(),
        };
        assert_eq!(outcome(CallToolResult::error(vec![ContentBlock::text("no\nroom")])), "failed no room");
        assert_eq!(outcome(CallToolResult::error(vec![])), "failed it does not say why");
        assert_eq!(
            outcome(CallToolResult::success(vec![ContentBlock::text("Posted!")])),
            "nonsense is no JSON: Posted!"
        );
        assert_eq!(outcome(CallToolResult::success(vec![])), "nonsense is empty");
    }
}
