//! The APIs that turn texts into vectors, without I/O: what is sent, and how a response is read.

use quorate_kernel::ports::executor::Usage;
use quorate_protocol::Json;
use serde_json::json;

use crate::executor::llm::fault::{self, Fault, Kind};
use crate::executor::llm::wire::{Auth, HttpRequest, Wire, path_segment};

/// An API for embeddings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// OpenAI's, and the servers compatible with it.
    OpenAi,
    /// Google's Gemini API.
    Gemini,
    /// Ollama's own.
    Ollama,
}

impl Api {
    pub const ALL: [Api; 3] = [Api::OpenAi, Api::Gemini, Api::Ollama];

    /// The word in settings.
    pub fn as_str(self) -> &'static str {
        self.wire().as_str()
    }

    /// The API of a word.
    pub fn read(word: &str) -> Option<Api> {
        Api::ALL.into_iter().find(|api| api.as_str() == word)
    }

    /// Where the vendor serves it; a path is appended.
    pub fn default_base_url(self) -> &'static str {
        self.wire().default_base_url()
    }

    /// How the vendor's own client sends the key. Ollama needs none; a gateway before it takes a bearer's.
    pub fn default_auth(self) -> Auth {
        match self {
            Api::Ollama => Auth::Bearer,
            api => api.wire().default_auth(),
        }
    }

    /// The wire of the same vendor's chat API.
    fn wire(self) -> Wire {
        match self {
            Api::OpenAi => Wire::Chat,
            Api::Gemini => Wire::Gemini,
            Api::Ollama => Wire::Ollama,
        }
    }

    /// The request for the vectors of some texts.
    pub fn encode(self, model: &str, texts: &[&str]) -> HttpRequest {
        match self {
            Api::OpenAi => {
                let body = json!({"model": model, "input": texts, "encoding_format": "float"});
                HttpRequest::new("/embeddings", &body)
            }
            Api::Gemini => {
                let model = model.strip_prefix("models/").unwrap_or(model);
                let request = |text: &&str| {
                    let content = json!({"role": "user", "parts": [{"text": text}]});
                    json!({"model": format!("models/{model}"), "content": content})
                };
                let body = json!({"requests": texts.iter().map(request).collect::<Vec<_>>()});
                HttpRequest::new(format!("/models/{}:batchEmbedContents", path_segment(model)), &body)
            }
            // A text that the server cut would be compared in part.
            Api::Ollama => {
                let body = json!({"model": model, "input": texts, "truncate": false});
                HttpRequest::new("/api/embed", &body)
            }
        }
    }

    /// The vectors in a response to a request for `count` texts, in the order of the texts.
    ///
    /// # Errors
    /// When the response is an error, has another number of vectors, vectors of different lengths, or one without a
    /// direction.
    pub fn decode(self, body: &Json, count: usize) -> Result<Vec<Vec<f32>>, Fault> {
        let list = match self {
            Api::OpenAi => body.get("data"),
            Api::Gemini | Api::Ollama => body.get("embeddings"),
        };
        let Some(list) = list.and_then(Json::as_array) else {
            return Err(match body.get("error").is_some_and(|error| !error.is_null()) {
                true => fault::from_event(body),
                false => Fault::new(Kind::Malformed, "it has no list of vectors"),
            });
        };
        if list.len() != count {
            let said = format!("it has {} vectors for {count} texts", list.len());
            return Err(Fault::new(Kind::Malformed, said));
        }
        let mut vectors = vec![Vec::new(); count];
        for (at, item) in list.iter().enumerate() {
            let (at, numbers) = match self {
                Api::OpenAi => (place(item, at, count)?, item.get("embedding")),
                Api::Gemini => (at, item.get("values")),
                Api::Ollama => (at, Some(item)),
            };
            if !vectors[at].is_empty() {
                return Err(Fault::new(Kind::Malformed, format!("it has two vectors for text {at}")));
            }
            vectors[at] = vector(numbers)?;
        }
        same_length(vectors.iter().map(Vec::as_slice))?;
        Ok(vectors)
    }
}

/// What a response says that it took. Gemini's does not say.
pub(super) fn usage(body: &Json) -> Usage {
    let count = |key: &str| body.get("usage").and_then(|usage| usage.get(key)).or_else(|| body.get(key));
    let tokens = ["prompt_tokens", "prompt_eval_count"].into_iter().find_map(|key| count(key)?.as_u64());
    // No text has no tokens: a gateway that does not count says 0.
    let tokens_in = tokens.filter(|tokens| *tokens > 0);
    Usage { tokens_in, tokens_out: tokens_in.map(|_| 0), ..Usage::default() }
}

/// The text that an item's vector is of. Without an index the order counts.
fn place(item: &Json, at: usize, count: usize) -> Result<usize, Fault> {
    let Some(index) = item.get("index").filter(|index| !index.is_null()) else { return Ok(at) };
    let place = index.as_u64().and_then(|index| usize::try_from(index).ok());
    place.filter(|place| *place < count).ok_or_else(|| {
        Fault::new(Kind::Malformed, format!("it has a vector for text {index} of {count} texts"))
    })
}

fn vector(numbers: Option<&Json>) -> Result<Vec<f32>, Fault> {
    let bad = |said: &str| Fault::new(Kind::Malformed, said);
    let numbers = numbers.and_then(Json::as_array).filter(|numbers| !numbers.is_empty());
    let numbers = numbers.ok_or_else(|| bad("a vector is no list of numbers"))?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a number too large becomes infinite, and is refused"
    )]
    let read =
        |number: &Json| number.as_f64().map(|number| number as f32).filter(|number| number.is_finite());
    let vector: Option<Vec<f32>> = numbers.iter().map(read).collect();
    let vector = vector.ok_or_else(|| bad("a vector has an entry that is no finite number"))?;
    // The length that a comparison divides by, computed as it computes it.
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    match length > 0.0 && length.is_finite() {
        true => Ok(vector),
        false => Err(bad("a vector has no direction: its length is zero, or too large to compute")),
    }
}

/// Refuses vectors of different lengths, which cannot be compared.
pub(super) fn same_length<'v>(vectors: impl IntoIterator<Item = &'v [f32]>) -> Result<(), Fault> {
    let mut lengths = vectors.into_iter().map(<[f32]>::len);
    let Some(first) = lengths.next() else { return Ok(()) };
    match lengths.find(|length| *length != first) {
        Some(other) => {
            let said = format!("the service gave vectors of {first} and of {other} numbers");
            Err(Fault::new(Kind::Malformed, said))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openai(items: Json) -> Result<Vec<Vec<f32>>, Fault> {
        let count = items.as_array().map_or(1, Vec::len);
        Api::OpenAi.decode(&json!({"data": items}), count)
    }

    #[test]
    fn vectors_are_read_in_the_order_of_the_texts() {
        let two = json!([{"index": 1, "embedding": [0, 1.5]}, {"index": 0, "embedding": [1, 0]}]);
        assert_eq!(openai(two).unwrap(), [[1.0, 0.0], [0.0, 1.5]]);
        let two = json!([{"embedding": [0, 1]}, {"index": null, "embedding": [1, 0]}]);
        assert_eq!(openai(two).unwrap(), [[0.0, 1.0], [1.0, 0.0]]);
        let gemini = json!({"embeddings": [{"values": [0.5, 1]}]});
        assert_eq!(Api::Gemini.decode(&gemini, 1).unwrap(), [[0.5, 1.0]]);
        let ollama = json!({"model": "m", "embeddings": [[0.5, 1]], "prompt_eval_count": 3});
        assert_eq!(Api::Ollama.decode(&ollama, 1).unwrap(), [[0.5, 1.0]]);
    }

    #[test]
    fn what_was_read_is_taken_from_each_form_and_nothing_is_unknown() {
        let tokens = |body: Json| usage(&body).tokens_in;
        assert_eq!(tokens(json!({"usage": {"prompt_tokens": 7, "total_tokens": 7}})), Some(7));
        assert_eq!(tokens(json!({"embeddings": [], "prompt_eval_count": 9})), Some(9));
        for body in [json!({}), json!({"usage": null}), json!({"usage": {"prompt_tokens": "7"}}), json!([])] {
            assert_eq!(tokens(body), None);
        }
        assert_eq!(usage(&json!({"usage": {"prompt_tokens": 0}})), Usage::default());
    }

    #[test]
    fn what_cannot_be_compared_is_a_fault() {
        for (items, says) in [
            (
                json!([{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]),
                "two vectors for text 0",
            ),
            (json!([{"index": 7, "embedding": [1]}]), "for text 7 of 1"),
            (json!([{"index": "0", "embedding": [1]}]), "for text \"0\""),
            (json!([{"index": 0}]), "no list of numbers"),
            (json!([{"index": 0, "embedding": []}]), "no list of numbers"),
            (json!([{"index": 0, "embedding": "AACAPwAAAAA="}]), "no list of numbers"),
            (json!([{"index": 0, "embedding": [1, null]}]), "no finite number"),
            (json!([{"index": 0, "embedding": [1, "1"]}]), "no finite number"),
            (json!([{"index": 0, "embedding": [1e300]}]), "no finite number"),
            (json!([{"index": 0, "embedding": [0, 0.0]}]), "no direction"),
            (json!([{"index": 0, "embedding": [1e-30]}]), "no direction"),
            (json!([{"index": 0, "embedding": [1e30]}]), "no direction"),
            (json!([{"embedding": [1]}, {"embedding": [1, 2]}]), "of 1 and of 2 numbers"),
            (json!({"index": 0}), "no list of vectors"),
        ] {
            let fault = openai(items).unwrap_err();
            assert!(fault.kind == Kind::Malformed && fault.said.contains(says), "{says}: {fault:?}");
        }
        let fault = Api::Ollama.decode(&json!({"embeddings": [[1]]}), 2).unwrap_err();
        assert!(fault.said.contains("1 vectors for 2 texts"), "{fault:?}");
        for api in Api::ALL {
            let error = json!({"error": {"message": "model is loading", "code": 503}});
            let fault = api.decode(&error, 1).unwrap_err();
            assert_eq!((fault.kind, &*fault.said), (Kind::Overloaded, "model is loading"));
        }
    }
}
