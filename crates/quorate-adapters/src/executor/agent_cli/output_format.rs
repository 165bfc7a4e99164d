//! The formats in which commands print.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputFormat {
    Text,
    /// The result envelope of `claude --output-format json`.
    ClaudeJson,
    /// The events of `codex exec --json`.
    CodexJsonl,
    /// The envelope of `gemini --output-format json`.
    GeminiJson,
}

impl OutputFormat {
    pub(super) const ALL: [OutputFormat; 4] =
        [OutputFormat::Text, OutputFormat::ClaudeJson, OutputFormat::CodexJsonl, OutputFormat::GeminiJson];

    /// Its value for the key `output`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            OutputFormat::Text => "text",
            OutputFormat::ClaudeJson => "claude-json",
            OutputFormat::CodexJsonl => "codex-jsonl",
            OutputFormat::GeminiJson => "gemini-json",
        }
    }
}

/// Why an output holds no reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplyError {
    /// The command itself reports the reason.
    Reported(String),
    /// It does not have the promised format.
    Malformed,
}
