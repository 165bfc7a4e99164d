//! The models that a service offers: where each wire lists them, and how its list is read.

use quorate_protocol::Json;

use super::wire::Wire;

/// Where the list is, below the base URL.
pub(super) fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::Messages => "/v1/models?limit=1000",
        Wire::Chat | Wire::Responses => "/models",
        Wire::Gemini => "/models?pageSize=1000",
        Wire::Ollama => "/api/tags",
    }
}

/// The names in a list, sorted; `None` where it is none.
pub(super) fn read(wire: Wire, list: &Json) -> Option<Vec<String>> {
    let (items, name, prefix) = match wire {
        Wire::Messages | Wire::Chat | Wire::Responses => (list.get("data")?, "id", ""),
        Wire::Gemini => (list.get("models")?, "name", "models/"),
        Wire::Ollama => (list.get("models")?, "name", ""),
    };
    let names = items.as_array()?.iter().filter_map(|item| item.get(name)?.as_str());
    let mut names: Vec<String> =
        names.map(|name| name.strip_prefix(prefix).unwrap_or(name).to_owned()).collect();
    names.sort_unstable();
    names.dedup();
    Some(names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_read_as_each_service_writes_them() {
        let openai = json!({"object": "list", "data": [{"id": "b"}, {"id": "a"}, {"id": "b"}, {"x": 1}]});
        for wire in [Wire::Messages, Wire::Chat, Wire::Responses] {
            assert_eq!(read(wire, &openai).unwrap(), ["a", "b"]);
        }
        let gemini = json!({"models": [{"name": "models/gemini-3.5-flash"}]});
        assert_eq!(read(Wire::Gemini, &gemini).unwrap(), ["gemini-3.5-flash"]);
        assert_eq!(read(Wire::Ollama, &json!({"models": [{"name": "qwen3:8b"}]})).unwrap(), ["qwen3:8b"]);
        assert_eq!(read(Wire::Chat, &gemini), None);
        assert_eq!(read(Wire::Chat, &json!({"data": "x"})), None);
    }
}
