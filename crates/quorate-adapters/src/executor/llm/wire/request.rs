//! One question to a model, the same for every wire, and the HTTP request that it becomes.

use quorate_protocol::Json;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// One question to a model. Every wire sends the same text.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The model, as the service names it.
    pub model: &'a str,
    /// The host's own instruction.
    pub system: Option<&'a str>,
    pub prompt: &'a str,
    /// Where prefixes of the prompt end that other prompts share: byte offsets, ascending. One that is not between two
    /// characters of the prompt is passed over.
    pub cuts: &'a [usize],
    pub format: Format<'a>,
    /// The cap on output tokens, those of reasoning included.
    pub max_tokens: u32,
    /// How much the model thinks, in the vendor's words, such as `low`. For `gemini` also a number of tokens.
    pub effort: Option<&'a str>,
    pub cache: Cache,
    /// The size of the context that the server makes room for. Only [`super::Wire::Ollama`] sends it.
    pub context_tokens: Option<u32>,
    pub server: Server,
}

/// The form that the service enforces on the answer.
#[derive(Debug, Clone, Copy)]
pub enum Format<'a> {
    /// Nothing: it is plain text, or the prompt alone says its form.
    Text,
    /// Some JSON object, where the wire can ask for one.
    JsonObject,
    /// A JSON Schema in the wire's dialect, as [`crate::executor::llm::schema::form`] makes it.
    Schema { name: &'a str, schema: &'a Json },
}

/// How the service's prompt cache is used. What is not [`Cache::Auto`] counts where [`super::Wire::has_cache_control`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// Asks the service to write nothing to its cache, if the wire can express that.
    Off,
    /// The vendor's default; if it caches only marked content, the cuts are marked.
    Auto,
    /// The cuts are marked, to be kept for the shorter time that the vendor has (5 or 30 minutes).
    Minutes,
    /// The cuts are marked, to be kept for the longer time that the vendor has (1 or 12 hours).
    Hour,
}

quorate_manifest::words!(Cache { Off = "off", Auto = "auto", Minutes = "5m", Hour = "1h" });

/// The server's owner. Servers that are compatible with a vendor's know older names of fields, and no cache settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Server {
    /// The vendor of the wire format.
    #[default]
    Vendor,
    /// Another program that speaks the wire format.
    Compatible,
}

/// A request, without the key: see [`super::Auth::header`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// To be appended to the base URL; with its query.
    pub path: String,
    /// Names are in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// JSON.
    pub body: Vec<u8>,
}

impl HttpRequest {
    pub(in crate::executor::llm) fn get(path: impl Into<String>) -> Self {
        let headers = vec![("accept", "application/json".to_owned())];
        HttpRequest { path: path.into(), headers, body: Vec::new() }
    }

    pub(in crate::executor::llm) fn new(path: impl Into<String>, body: &impl Serialize) -> Self {
        let mut request = HttpRequest::get(path);
        request.headers.push(("content-type", "application/json".to_owned()));
        // A body of texts, numbers and lists of them always has a form.
        request.body = serde_json::to_vec(body).unwrap_or_default();
        request
    }
}

/// A text as one segment of a path.
pub(in crate::executor::llm) fn path_segment(text: &str) -> String {
    let mut segment = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => segment.push(char::from(byte)),
            _ => segment.push_str(&format!("%{byte:02X}")),
        }
    }
    segment
}

impl Request<'_> {
    /// The prompt as content blocks of a type. With a mark, a block ends at each of the last `max_marks` cuts, and has it.
    pub(super) fn blocks(&self, kind: &str, mark: Option<(&str, &Json)>, max_marks: usize) -> Vec<Json> {
        let mut blocks = Vec::new();
        let mut start = 0;
        for end in mark.map(|_| self.last_cuts(max_marks)).unwrap_or_default() {
            blocks.push(json!({"type": kind, "text": &self.prompt[start..end]}));
            start = end;
        }
        if let Some((key, mark)) = mark {
            blocks.iter_mut().for_each(|block| block[key] = mark.clone());
        }
        if start < self.prompt.len() || blocks.is_empty() {
            blocks.push(json!({"type": kind, "text": &self.prompt[start..]}));
        }
        blocks
    }

    /// The last cuts, at most so many: longer prefixes spare more than shorter ones.
    pub(super) fn last_cuts(&self, most: usize) -> Vec<usize> {
        let mut cuts: Vec<usize> = Vec::new();
        for &cut in self.cuts {
            if self.prompt.is_char_boundary(cut) && cut > cuts.last().copied().unwrap_or(0) {
                cuts.push(cut);
            }
        }
        cuts.split_off(cuts.len().saturating_sub(most))
    }
}
