//! Loads `quorate.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::{Place, codes};

use super::{
    AssemblyTable, Block, Configuration, CouncilMember, EmbedderTable, ExecutorTable, Lock, RuntimeTable,
    budget, executor, keys, ledger, playbooks, redact,
};
use crate::tree::{Field, Format, ParsedFile, open};
use crate::{Loaded, Source};

type NamedExecutor = (String, Place);

/// Loads a configuration. `shown` is the path as messages show it.
pub fn load(path: &Path, shown: &str, source: &dyn Source) -> Loaded<Configuration> {
    let opened = match open(source, path, shown, Format::Toml, codes::HOST_INVALID) {
        Ok(opened) => opened,
        Err(report) => return Loaded { value: None, report },
    };
    let configuration = read(&opened, path);
    let report = opened.source_file.into_report();
    debug_assert!(configuration.is_some() || report.has_refusals(), "no configuration and no refusal");
    Loaded { value: configuration.filter(|_| !report.has_refusals()), report }
}

fn read(opened: &ParsedFile, path: &Path) -> Option<Configuration> {
    let mut fields = opened.fields()?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let configuration = Configuration {
        dir: dir.map_or_else(|| PathBuf::from("."), Path::to_path_buf),
        strict_chain: fields.optional("strict_chain").and_then(|field| field.boolean()).unwrap_or_default(),
        ledger: fields.optional("ledger").map(|field| ledger::read(&field)).unwrap_or_default(),
        default_executor: fields.optional("defaults").and_then(|field| executor_name(&field)),
        early_decision: fields
            .optional("early_decision")
            .and_then(|field| field.boolean())
            .unwrap_or_default(),
        council_members: fields.optional("council").map(|field| council_members(&field)).unwrap_or_default(),
        assemblies: fields.optional("assemblies").map(|field| assemblies(&field)).unwrap_or_default(),
        executors: fields.optional("executors").map(|field| executors(&field)).unwrap_or_default(),
        servers: fields.optional("mcp").map(|field| servers(&field)).unwrap_or_default(),
        runtimes: fields.optional("runtimes").map(|field| runtimes(&field)).unwrap_or_default(),
        embedder: fields.optional("embedder").and_then(|field| embedder(&field)),
        budget: fields.optional("budget").map(|field| budget::read(&field)).unwrap_or_default(),
        playbooks: fields.optional("playbooks").map(|field| playbooks::read(&field)).unwrap_or_default(),
        locks: fields.optional("locks").map(|field| locks(&field)).unwrap_or_default(),
        keys: fields.optional("keys").map(|field| keys::read(&field)).unwrap_or_default(),
        governance: fields
            .optional("governance")
            .and_then(|field| Some((field.non_blank_text()?.to_owned(), field.place()))),
        redact: fields.optional("redact").map(|field| redact::read(&field)).unwrap_or_default(),
    };
    fields.finish();
    Some(configuration)
}

/// Reads `[council]`, which has the key `members` alone.
fn council_members(field: &Field<'_>) -> BTreeMap<String, CouncilMember> {
    let Some(mut fields) = field.fields() else { return BTreeMap::new() };
    let members = fields.optional("members").and_then(|field| field.entries()).unwrap_or_default();
    let members =
        members.into_iter().filter_map(|(id, field)| Some((id.to_owned(), council_member(&field)?)));
    let members = members.collect();
    fields.finish();
    members
}

fn council_member(field: &Field<'_>) -> Option<CouncilMember> {
    let mut fields = field.fields()?;
    let mut text = |key| {
        let field = fields.optional(key)?;
        Some((field.non_blank_text()?.to_owned(), field.place()))
    };
    let (executor, model) = (text("executor"), text("model"));
    let source = Arc::clone(fields.source_file().text());
    fields.finish();
    Some(CouncilMember { place: field.key_place(), executor, model, source })
}

fn assemblies(field: &Field<'_>) -> BTreeMap<String, AssemblyTable> {
    let tables = field.entries().unwrap_or_default();
    tables.into_iter().filter_map(|(name, field)| Some((name.to_owned(), assembly(&field)?))).collect()
}

fn assembly(field: &Field<'_>) -> Option<AssemblyTable> {
    let (executor, members) = executor_assignments(field, "members")?;
    Some(AssemblyTable { executor, members })
}

/// Reads MCP servers; their keys are for the MCP client.
fn servers(field: &Field<'_>) -> BTreeMap<String, Block> {
    let tables = field.entries().unwrap_or_default();
    let read = |(id, field): (&str, Field<'_>)| {
        let fields = field.fields()?;
        Some((id.to_owned(), executor::block(&field, &fields)))
    };
    tables.into_iter().filter_map(read).collect()
}

fn locks(field: &Field<'_>) -> BTreeMap<String, Lock> {
    let tables = field.entries().unwrap_or_default();
    let read = |(id, field): (&str, Field<'_>)| Some((id.to_owned(), playbooks::lock(id, &field)?));
    tables.into_iter().filter_map(read).collect()
}

fn runtimes(field: &Field<'_>) -> BTreeMap<String, RuntimeTable> {
    let tables = field.entries().unwrap_or_default();
    let read = |(id, field): (&str, Field<'_>)| {
        let (executor, participants) = executor_assignments(&field, "participants")?;
        Some((id.to_owned(), RuntimeTable { executor, participants }))
    };
    tables.into_iter().filter_map(read).collect()
}

/// Reads `executor`, and the table `each` with executors of single members or participants.
fn executor_assignments(
    field: &Field<'_>,
    each: &'static str,
) -> Option<(Option<NamedExecutor>, BTreeMap<String, NamedExecutor>)> {
    let mut fields = field.fields()?;
    let executor =
        fields.optional("executor").and_then(|f| Some((f.non_blank_text()?.to_owned(), f.place())));
    let named = fields.optional(each).and_then(|field| field.entries()).unwrap_or_default();
    let named = named.into_iter().filter_map(|(id, field)| Some((id.to_owned(), executor_name(&field)?)));
    let named = named.collect();
    fields.finish();
    Some((executor, named))
}

/// Reads a table with the only key `executor`.
fn executor_name(field: &Field<'_>) -> Option<NamedExecutor> {
    let mut fields = field.fields()?;
    let executor =
        fields.optional("executor").and_then(|f| Some((f.non_blank_text()?.to_owned(), f.place())));
    fields.finish();
    executor
}

fn executors(field: &Field<'_>) -> BTreeMap<String, ExecutorTable> {
    let tables = field.entries().unwrap_or_default();
    let named = tables.into_iter().filter_map(|(name, field)| {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if !plain || name.is_empty() {
            let message = format!("`{name}` cannot be the name of an executor");
            field.invalid_with(message, "use the characters A-Z a-z 0-9 _ - .");
            return None;
        }
        Some((name.to_owned(), executor::read(&field)?))
    });
    named.collect()
}

fn embedder(field: &Field<'_>) -> Option<Box<EmbedderTable>> {
    let mut fields = field.fields()?;
    let timeout = fields.optional("timeout").and_then(|field| field.duration());
    Some(Box::new(EmbedderTable { timeout, block: executor::block(field, &fields) }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::source::Error;

    struct Text(&'static str);

    impl Source for Text {
        fn read(&self, _: &Path) -> Result<Vec<u8>, Error> {
            Ok(self.0.as_bytes().to_vec())
        }
    }

    #[test]
    fn every_key_arrives() {
        let text = "\
ledger = \"x.db\"
defaults.executor = \"claude\"
[executors.claude]
preset = \"claude\"
timeout = \"2m\"
retries = 1
env = [\"KEY\"]
[executors.script]
kind = \"script\"
[budget]
calls = 40
tokens = 400000
money = \"1.5 USD\"
prices = \"prices.toml\"
wall = \"10m\"
";
        let host =
            load(Path::new("quorate.toml"), "quorate.toml", &Text(text)).value.expect("nothing was refused");
        assert_eq!((host.dir.as_path(), host.ledger.path.as_deref()), (Path::new("."), Some("x.db")));
        assert_eq!(
            host.default_executor.map(|(name, place)| (name, place.path)),
            Some(("claude".into(), "defaults.executor".into()))
        );
        let claude = &host.executors["claude"];
        assert_eq!(
            (&claude.kind, claude.timeout, claude.retries),
            (&None, Some(Duration::from_secs(120)), Some(1))
        );
        assert_eq!(
            serde_json::Value::from(claude.block.json.clone()),
            json!({"preset": "claude", "env": ["KEY"]})
        );
        assert_eq!(&text[claude.block.place_of(Some("env")).span], "env");
        let (kind, place) = host.executors["script"].kind.clone().expect("a kind");
        assert_eq!((kind.as_str(), &text[place.span]), ("script", "\"script\""));
        let budget = host.budget;
        assert_eq!(
            (budget.calls, budget.tokens, budget.usd_nanos, budget.wall),
            (Some(40), Some(400_000), Some(1_500_000_000), Some(Duration::from_secs(600)))
        );
        assert_eq!(budget.prices.map(|(path, _)| path).as_deref(), Some("prices.toml"));
    }

    #[test]
    fn an_empty_file_is_the_default() {
        let host = load(Path::new("a/quorate.toml"), "quorate.toml", &Text("")).value;
        assert_eq!(host, Some(Configuration { dir: PathBuf::from("a"), ..Configuration::default() }));
    }
}
