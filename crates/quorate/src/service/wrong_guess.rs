//! The right form of an executor's name or kind that other tools write in another way: `ollama/qwen3`, an address that ends
//! with the API's path, the name of a model alone. A suggestion works as it stands.

use quorate_kernel::registry::Registry;
use quorate_manifest::tree::reader::nearest;

/// Names of services that other tools use, separated by `|` like all lists here, without `-`, `_`, `.` and blanks, and their presets.
const ALIASES: &[(&str, &str)] = &[
    ("google|googleai|googlegemini", "gemini"),
    ("gpt|chatgpt|openaiapi|openairesponses", "openai"),
    ("anthropicapi|claudeapi", "anthropic"),
    ("azureopenai", "azure"),
    ("aws|awsbedrock|amazonbedrock", "bedrock"),
    ("claudecode|claudecli", "claude"),
    ("ollamachat", "ollama"),
    ("codexcli|openaicodex", "codex"),
];

/// Local servers without a preset, and their addresses. The last ones are words for any server.
const LOCAL_SERVERS: &[(&str, &str)] = &[
    ("llamacpp|llamaserver|llamafile|mlx|localai", "http://localhost:8080/v1"),
    ("vllm|hostedvllm", "http://localhost:8000/v1"),
    ("litellm", "http://localhost:4000/v1"),
    ("koboldcpp", "http://localhost:5001/v1"),
    ("jan", "http://localhost:1337/v1"),
    (
        "openaicompatible|openaichat|openailike|customopenai|http|https|api|chat|model|completions|rest",
        "http://localhost:8080/v1",
    ),
];

/// How the names of models begin, and the preset that has them; none where several services do.
const MODELS: &[(&str, &str)] = &[
    (
        "llama-|qwen-|deepseek-chat|deepseek-reasoner|mistral-large-|mistral-medium|mistral-small-|mistral-tiny",
        "",
    ),
    ("gpt-oss", "ollama"),
    ("gpt-|chatgpt-|o1|o3|o4", "openai"),
    ("claude-", "anthropic"),
    ("gemini-", "gemini"),
    ("opus|sonnet|haiku", "claude"),
    ("qwen|llama|mistral|mixtral|gemma|phi3|phi4|deepseek|smollm|granite", "ollama"),
];

/// The paths that an API adds to a base URL.
const API_PATHS: &str = "/chat/completions|/completions|/responses|/messages|/embeddings|/models|/api/chat|/api/generate|/api/tags";

/// The right form of an executor's name; `None` if it has that form, or what is meant is not known. `tables` are the names
/// of executors that a file configures.
pub(super) fn name<'t>(
    registry: &Registry,
    written: &str,
    tables: impl Iterator<Item = &'t str>,
) -> Option<String> {
    let written = written.trim();
    let tables: Vec<&str> = tables.collect();
    let right = match address(written) {
        Some(right) => right,
        // An address that has no right form may hold a password, and is not repeated.
        None if written.contains("://") => return None,
        // A preset with any model is a name, whatever the model looks like.
        None if written.split_once(':').is_some_and(|(preset, _)| registry.preset_kind(preset).is_some()) => {
            return None;
        }
        None => {
            let meant = table(written, &tables).or_else(|| service_and_model(registry, written));
            let meant = meant.or_else(|| model(registry, written));
            meant.or_else(|| mistyped(registry, written, &tables))?
        }
    };
    (right != written).then_some(right)
}

/// What to write in place of an unknown kind of a table.
pub(super) fn kind(registry: &Registry, written: &str) -> Option<String> {
    let plain = normalized(written);
    if let Some(preset) = service(registry, &plain) {
        return Some(format!("`{preset}` is a preset: write `preset = \"{preset}\"` in place of `kind`"));
    }
    if let Some(address) = local_server(&plain) {
        return Some(format!("write `kind = \"llm\"` and `base_url = \"{address}\"`"));
    }
    match &*plain {
        "cli" | "command" | "shell" | "agent" | "exec" | "program" => {
            Some("write `kind = \"agent-cli\"`, with `command`".to_owned())
        }
        _ => None,
    }
}

/// What to write in place of an unknown preset.
pub(super) fn unknown_preset(registry: &Registry, written: &str) -> String {
    let presets: Vec<&str> = registry.presets().collect();
    match preset(registry, written).or_else(|| nearest(written, &presets)) {
        Some(preset) => format!("write `preset = \"{preset}\"`"),
        None => format!("the presets are {}", presets.join(", ")),
    }
}

/// The preset that a name of a service means.
pub(super) fn preset(registry: &Registry, written: &str) -> Option<&'static str> {
    service(registry, &normalized(written))
}

/// The right form of an address; `None` if the name is none.
fn address(written: &str) -> Option<String> {
    let lower = written.to_ascii_lowercase();
    let is_url = ["http://", "https://"].iter().any(|scheme| lower.starts_with(scheme));
    let with_scheme =
        if is_url { written.to_owned() } else { format!("{}{written}", implied_scheme(written)?) };
    let (scheme, rest) = with_scheme.split_once("://")?;
    let (rest, model) = match rest.split_once('#') {
        Some((rest, model)) => (rest, Some(model)),
        None => (rest, None),
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // What stands before an `@` may be a password, which the adapter refuses without repeating it.
    if host.contains('@') {
        return None;
    }
    let (host, path, moved) = match (model, path.split_once(':')) {
        (Some(_), _) => (host, path, None),
        (None, Some((path, model))) => (host, path, Some(model)),
        // A model in place of the port, or after it.
        (None, None) => match model_in(host) {
            Some(at) => (&host[..at], path, Some(&host[at + 1..])),
            None => (host, path, None),
        },
    };
    let path = path.trim_end_matches('/');
    let short = API_PATHS.split('|').find_map(|end| path.strip_suffix(end));
    if written.starts_with("http") && is_url && short.is_none() && moved.is_none() {
        return Some(written.to_owned());
    }
    let model = model.or(moved);
    let path = match short.unwrap_or(path) {
        "" => "/v1",
        path => path,
    };
    let model = model.filter(|model| !model.is_empty()).map_or(String::new(), |model| format!("#{model}"));
    Some(format!("{}://{host}{path}{model}", scheme.to_ascii_lowercase()))
}

/// Where a model begins that follows a host or its port.
fn model_in(host: &str) -> Option<usize> {
    let mut places = host.match_indices(':').map(|(at, _)| at).filter(|_| !host.starts_with('['));
    let first = places.next()?;
    let is_port = host[first + 1..].starts_with(|letter: char| letter.is_ascii_digit());
    if is_port { places.next() } else { Some(first) }
}

/// The scheme of a name that is an address without one.
fn implied_scheme(written: &str) -> Option<&'static str> {
    let head = written.split(['/', '#']).next().unwrap_or_default();
    let (host, port) = head.rsplit_once(':').unwrap_or((head, ""));
    let has_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_ip = host.parse::<std::net::Ipv4Addr>().is_ok() || host.starts_with('[');
    let has_path = head.len() < written.len();
    if host == "localhost" || is_ip || has_port && (has_path || host.contains('.')) {
        return Some("http://");
    }
    (host.contains('.') && written[head.len()..].starts_with("/v1")).then_some("https://")
}

/// A service with a model after it, in whatever way they are joined.
fn service_and_model(registry: &Registry, written: &str) -> Option<String> {
    let whole = normalized(written);
    if let Some(preset) = service(registry, &whole) {
        return Some(preset.to_owned());
    }
    if let Some(address) = local_server(&whole) {
        return Some(format!("{address}#MODEL"));
    }
    let (before, model) = written.split_once(['/', ' ', ':', '=', '#', '@'])?;
    let (before, model) = (normalized(before), model.trim());
    if model.is_empty() {
        return None;
    }
    if let Some(preset) = service(registry, &before) {
        return Some(format!("{preset}:{model}"));
    }
    local_server(&before).map(|address| format!("{address}#{model}"))
}

/// The table whose name is almost as long and similar: a file's own names come before all others.
fn table(written: &str, tables: &[&str]) -> Option<String> {
    let is_as_long = |table: &&&str| table.len().abs_diff(written.len()) <= 2;
    let tables: Vec<&str> = tables.iter().filter(is_as_long).copied().collect();
    nearest(written, &tables).filter(|_| !written.contains(['/', ' ', ':', '=', '#', '@'])).map(str::to_owned)
}

/// A name with a letter too many, too few or wrong.
fn mistyped(registry: &Registry, written: &str, tables: &[&str]) -> Option<String> {
    let (before, model) = written.split_at(written.find(':').unwrap_or(written.len()));
    let presets: Vec<&str> = registry.presets().collect();
    if model.is_empty() {
        let all: Vec<&str> = tables.iter().copied().chain(presets).chain(registry.default_kind).collect();
        return nearest(written, &all).map(str::to_owned);
    }
    nearest(before, &presets).map(|preset| format!("{preset}{model}"))
}

/// The name of a model alone.
fn model(registry: &Registry, written: &str) -> Option<String> {
    let right = executor_of(written)?;
    registry.preset_kind(right.split(':').next()?).map(|_| right)
}

/// The executor that asks a model, if one service has the models with such names.
pub(super) fn executor_of(model: &str) -> Option<String> {
    let lower = model.to_ascii_lowercase();
    let is_so = |begins: &str| begins.split('|').any(|begin| lower.starts_with(begin));
    let (_, preset) = MODELS.iter().find(|(begins, _)| is_so(begins)).filter(|(_, one)| !one.is_empty())?;
    Some(format!("{preset}:{model}"))
}

fn service(registry: &Registry, plain: &str) -> Option<&'static str> {
    let alias = meant(ALIASES, plain);
    registry.presets().find(|preset| normalized(preset) == plain || Some(*preset) == alias)
}

fn local_server(plain: &str) -> Option<&'static str> {
    meant(LOCAL_SERVERS, plain)
}

/// The second entry of the row of a table whose first one lists a name.
fn meant(table: &[(&str, &'static str)], plain: &str) -> Option<&'static str> {
    table.iter().find(|(names, _)| names.split('|').any(|name| name == plain)).map(|(_, meant)| *meant)
}

fn normalized(written: &str) -> String {
    let kept = written.chars().filter(|letter| !matches!(letter, '-' | '_' | '.' | ' '));
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::super::registries::Registries;
    use super::*;

    #[test]
    fn wrong_names_have_a_right_form_that_has_none() {
        let registries = Registries::default();
        let registry = registries.registry();
        let name = |written: &str| super::name(registry, written, ["reviewer"].into_iter());
        for (written, right) in [
            ("http://localhost:8080/v1:qwen3", "http://localhost:8080/v1#qwen3"),
            ("http://localhost:11434/v1:qwen3:8b", "http://localhost:11434/v1#qwen3:8b"),
            ("http://127.0.0.1:8080:qwen3", "http://127.0.0.1:8080/v1#qwen3"),
            ("https://gw.example.com/openai/v1:gpt-5.5", "https://gw.example.com/openai/v1#gpt-5.5"),
            ("http://localhost:8080/v1/chat/completions#m", "http://localhost:8080/v1#m"),
            ("http://localhost:8080/v1/chat/completions", "http://localhost:8080/v1"),
            ("http://localhost:8080/v1/chat/completions:m", "http://localhost:8080/v1#m"),
            ("http://localhost:8080/chat/completions#m", "http://localhost:8080/v1#m"),
            ("http://localhost:8080/v1/responses#m", "http://localhost:8080/v1#m"),
            ("http://localhost:8080/v1/models", "http://localhost:8080/v1"),
            ("http://localhost:11434/api/chat#qwen3", "http://localhost:11434/v1#qwen3"),
            ("HTTP://localhost:8080/v1:m", "http://localhost:8080/v1#m"),
            ("localhost:1234#m", "http://localhost:1234/v1#m"),
            ("localhost:1234/v1#m", "http://localhost:1234/v1#m"),
            ("localhost:1234/v1/chat/completions#m", "http://localhost:1234/v1#m"),
            ("localhost:1234", "http://localhost:1234/v1"),
            ("localhost", "http://localhost/v1"),
            ("localhost:qwen3", "http://localhost/v1#qwen3"),
            ("127.0.0.1:8080/v1:m", "http://127.0.0.1:8080/v1#m"),
            ("192.168.1.20:8000#m", "http://192.168.1.20:8000/v1#m"),
            ("gpu-box:8000/v1#m", "http://gpu-box:8000/v1#m"),
            ("studio.local:1234", "http://studio.local:1234/v1"),
            ("api.example.com/v1#m", "https://api.example.com/v1#m"),
            ("[::1]:8080#m", "http://[::1]:8080/v1#m"),
            ("ollama/qwen3", "ollama:qwen3"),
            ("ollama_chat/qwen3", "ollama:qwen3"),
            ("hosted_vllm/m", "http://localhost:8000/v1#m"),
            ("openai-compatible", "http://localhost:8080/v1#MODEL"),
            ("openai_compatible/m", "http://localhost:8080/v1#m"),
            ("ollama qwen3", "ollama:qwen3"),
            ("ollama qwen3:8b", "ollama:qwen3:8b"),
            ("Ollama:qwen3", "ollama:qwen3"),
            ("openai/gpt-5.5", "openai:gpt-5.5"),
            ("openai=gpt-5.5", "openai:gpt-5.5"),
            ("openrouter/openai/gpt-5.5", "openrouter:openai/gpt-5.5"),
            ("google/gemini-3.5-flash", "gemini:gemini-3.5-flash"),
            ("azure_openai:gpt-5.5", "azure:gpt-5.5"),
            ("lm-studio", "lmstudio"),
            ("LM Studio", "lmstudio"),
            ("lm_studio/qwen3", "lmstudio:qwen3"),
            ("OpenAI", "openai"),
            ("claude-code", "claude"),
            ("claude_code:opus", "claude:opus"),
            ("gpt-5.5", "openai:gpt-5.5"),
            ("o3-mini", "openai:o3-mini"),
            ("claude-opus-4-8", "anthropic:claude-opus-4-8"),
            ("gemini-3.5-flash", "gemini:gemini-3.5-flash"),
            ("opus", "claude:opus"),
            ("qwen3", "ollama:qwen3"),
            ("mistral-small3.2", "ollama:mistral-small3.2"),
            ("deepseek-r1:8b", "ollama:deepseek-r1:8b"),
            ("qwen3:8b", "ollama:qwen3:8b"),
            ("llama3.2", "ollama:llama3.2"),
            ("gpt-oss:20b", "ollama:gpt-oss:20b"),
            ("vllm:m", "http://localhost:8000/v1#m"),
            ("llama.cpp", "http://localhost:8080/v1#MODEL"),
            ("litellm/gpt-5.5", "http://localhost:4000/v1#gpt-5.5"),
            ("opnai", "openai"),
            ("olama:qwen3", "ollama:qwen3"),
            ("revewer", "reviewer"),
            ("rubrik", "rubric"),
        ] {
            assert_eq!(name(written).as_deref(), Some(right), "{written}");
            assert_eq!(name(right), None, "{right} is right");
        }
        for right in [
            "rubric",
            "ollama",
            "ollama:qwen3",
            "ollama:8080",
            "openrouter:openai/gpt-5.5",
            "openai:gpt 5",
            "http://localhost:8080/v1#m",
            "http://localhost:8080#m",
            "http://localhost:8080/v1/#m",
            "http://localhost:8080/",
            "https://x.example/a/b#org/model:tag",
            "http://[::1]:8080/v1#m",
            "http://me:secret@localhost:8080/v1:m",
            "reviewer",
            "my-council",
            "deepseek-chat",
            "mistral-large-latest",
            "llama-3.3-70b-versatile",
            "qwen-plus",
            "",
        ] {
            assert_eq!(name(right), None, "{right}");
        }
    }

    #[test]
    fn the_nearest_table_comes_before_the_name_of_a_model_or_service() {
        let registries = Registries::default();
        let tables = ["opus", "local", "qwen-big", "gpt", "Reviewer-2"];
        for (written, right) in [
            ("opuss", "opus"),
            ("oppus", "opus"),
            ("lokal", "local"),
            ("qwen_big", "qwen-big"),
            ("gpt5", "gpt"),
            ("reviewer-2", "Reviewer-2"),
            // No table is meant.
            ("ollama/qwen3", "ollama:qwen3"),
            ("qwen3:8b", "ollama:qwen3:8b"),
            ("claude-opus-4-8", "anthropic:claude-opus-4-8"),
            ("lm-studio", "lmstudio"),
        ] {
            let meant = name(registries.registry(), written, tables.into_iter()).unwrap_or_default();
            assert_eq!(meant, right, "{written}");
        }
    }

    #[test]
    fn an_unknown_preset_has_the_nearest_one() {
        let registries = Registries::default();
        for (written, right) in [
            ("opnai", "write `preset = \"openai\"`"),
            ("antropic", "write `preset = \"anthropic\"`"),
            ("olama", "write `preset = \"ollama\"`"),
            ("LM Studio", "write `preset = \"lmstudio\"`"),
            ("google", "write `preset = \"gemini\"`"),
            ("bedrok", "write `preset = \"bedrock\"`"),
            ("zzz", "the presets are "),
        ] {
            let said = unknown_preset(registries.registry(), written);
            assert!(said.starts_with(right), "{written}: {said}");
        }
    }

    #[test]
    fn wrong_kinds_have_a_right_form() {
        let registries = Registries::default();
        let kind = |written: &str| kind(registries.registry(), written).unwrap_or_default();
        for preset in [
            "openai",
            "anthropic",
            "gemini",
            "ollama",
            "lmstudio",
            "openrouter",
            "azure",
            "bedrock",
            "claude",
            "codex",
        ] {
            assert!(kind(preset).contains(&format!("write `preset = \"{preset}\"`")), "{preset}");
        }
        for (written, right) in [
            ("OpenAI", "preset = \"openai\""),
            ("lm-studio", "preset = \"lmstudio\""),
            ("google", "preset = \"gemini\""),
            ("azure-openai", "preset = \"azure\""),
            ("claude-code", "preset = \"claude\""),
            ("vllm", "base_url = \"http://localhost:8000/v1\""),
            ("llama.cpp", "base_url = \"http://localhost:8080/v1\""),
            ("openai-compatible", "write `kind = \"llm\"`"),
            ("cli", "kind = \"agent-cli\""),
        ] {
            assert!(kind(written).contains(right), "{written}: {}", kind(written));
        }
        assert_eq!(kind("zebra"), "");
    }
}
