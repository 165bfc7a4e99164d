//! The services that are known by name: where they are, how they are spoken to, and which variable has the key.

use super::wire::{Auth, Server, Wire};

/// Sorted by name.
pub const PRESETS: &[Preset] = &[
    Preset {
        variables: &["ANTHROPIC_API_KEY"],
        auth: Auth::XApiKey,
        default_model: Some("claude-sonnet-5"),
        ..Preset::of("anthropic", Wire::Messages, "https://api.anthropic.com")
    },
    Preset {
        variables: &["AZURE_OPENAI_API_KEY"],
        auth: Auth::ApiKey,
        host_variable: Some(("AZURE_OPENAI_ENDPOINT", "https://NAME.openai.azure.com")),
        ..Preset::of("azure", Wire::Responses, "{}/openai/v1")
    },
    Preset {
        variables: &["AWS_BEARER_TOKEN_BEDROCK"],
        host_variable: Some(("AWS_REGION", "us-east-1")),
        server: Server::Compatible,
        ..Preset::of("bedrock", Wire::Chat, "https://bedrock-runtime.{}.amazonaws.com/openai/v1")
    },
    Preset {
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        auth: Auth::XGoogApiKey,
        default_model: Some("gemini-3.5-flash"),
        ..Preset::of("gemini", Wire::Gemini, "https://generativelanguage.googleapis.com/v1")
    },
    Preset {
        server: Server::Compatible,
        is_local: true,
        auth: Auth::None,
        ..Preset::of("lmstudio", Wire::Chat, "http://localhost:1234/v1")
    },
    Preset {
        is_local: true,
        auth: Auth::None,
        ..Preset::of("ollama", Wire::Ollama, "http://localhost:11434")
    },
    Preset {
        variables: &["OPENAI_API_KEY"],
        default_model: Some("gpt-5.5"),
        ..Preset::of("openai", Wire::Responses, "https://api.openai.com/v1")
    },
    Preset {
        variables: &["OPENROUTER_API_KEY"],
        server: Server::Compatible,
        ..Preset::of("openrouter", Wire::Chat, "https://openrouter.ai/api/v1")
    },
];

/// The first preset that can be asked with nothing but its name, as its variable is set; with that variable.
pub fn with_key(is_set: impl Fn(&str) -> bool) -> Option<(&'static str, &'static str)> {
    let ready =
        PRESETS.iter().filter(|preset| preset.default_model.is_some() && preset.host_variable.is_none());
    ready
        .flat_map(|preset| preset.variables.iter().map(|name| (preset.name, *name)))
        .find(|(_, name)| is_set(name))
}

/// A service with its settings.
#[derive(Debug)]
pub struct Preset {
    /// The value of the key `preset`.
    pub name: &'static str,
    pub(super) wire: Wire,
    /// The base URL; `{}` stands for the value of `host_variable`.
    pub(super) base_url: &'static str,
    /// The variable that completes the base URL, and an example of its value.
    pub(super) host_variable: Option<(&'static str, &'static str)>,
    /// The variables that may have the key; the first that is set counts.
    pub(super) variables: &'static [&'static str],
    pub(super) auth: Auth,
    /// The model that is asked if none is named.
    pub(super) default_model: Option<&'static str>,
    pub(super) server: Server,
    /// Whether it runs on this machine, and costs nothing.
    pub(super) is_local: bool,
}

impl Preset {
    const fn of(name: &'static str, wire: Wire, base_url: &'static str) -> Preset {
        Preset {
            name,
            wire,
            base_url,
            host_variable: None,
            variables: &[],
            auth: Auth::Bearer,
            default_model: None,
            server: Server::Vendor,
            is_local: false,
        }
    }

    /// The preset of a name.
    pub(super) fn find(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_sorted_and_one_with_a_key_is_named() {
        assert!(PRESETS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert_eq!(with_key(|name| name == "GOOGLE_API_KEY"), Some(("gemini", "GOOGLE_API_KEY")));
        assert_eq!(with_key(|_| true), Some(("anthropic", "ANTHROPIC_API_KEY")));
        // Those need a model, too.
        assert_eq!(with_key(|name| name == "OPENROUTER_API_KEY" || name == "AZURE_OPENAI_API_KEY"), None);
    }
}
