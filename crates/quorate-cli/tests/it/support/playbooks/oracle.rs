//! What must hold of a workspace's playbooks after whatever was done, read from its files without the code under test.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quorate::manifests::CheckRequest;
use quorate::playbook::{ComposedPrompt, PartSource, WeaveRequest, WeaveTarget};
use quorate_manifest::frontmatter;
use quorate_manifest::playbook::Playbook;
use quorate_manifest::tree::yaml;
use quorate_playbook::history::{self, Version};
use quorate_playbook::log::index;
use serde_json::Value;

use super::world::{DAY_MS, World};

/// The kind of record that `weave` appends.
const COMPOSITION_KINDS: [&str; 2] = ["playbooks.composed", "playbook.skipped"];

/// A playbook as its file says, line by line.
#[derive(Debug, Clone)]
pub struct PlaybookFile {
    pub slug: String,
    pub status: String,
    pub text: String,
    pub versions: Vec<Version>,
    is_block: bool,
    supersedes: Vec<String>,
    expires_ms: Option<i64>,
}

impl PlaybookFile {
    pub fn read(path: &Path) -> PlaybookFile {
        let text = std::fs::read_to_string(path).expect("a file");
        let field = |key: &str| {
            let head = text.split("\n---").next().unwrap_or_default();
            let found = head.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            found.map(|value| value.trim().trim_matches('"').to_owned())
        };
        // A list on one line, or one entry a line.
        let lines = text.lines().skip_while(|line| !line.starts_with("supersedes:"));
        let list = lines
            .enumerate()
            .take_while(|(at, line)| *at == 0 || line.starts_with([' ', '-']) && *line != "---");
        let words = list.flat_map(|(_, line)| line.split([' ', ',', '[', ']', '"', ':']));
        let supersedes =
            words.filter(|word| word.contains('-') && word.len() > 1).map(str::to_owned).collect();
        let slug = field("slug").expect("a slug");
        let history = path.with_file_name(format!("{slug}.history.md"));
        let history = std::fs::read_to_string(history).unwrap_or_default();
        let at = field("updated_at").or(field("created_at"));
        let at = at.map(|at| quorate_manifest::timestamp::parse(&at).expect("a time"));
        let days = field("ttl").map(|ttl| {
            let days = ttl.strip_prefix('P').and_then(|ttl| ttl.strip_suffix('D'));
            days.and_then(|days| days.parse::<i64>().ok()).expect("days")
        });
        PlaybookFile {
            slug,
            status: field("status").expect("a status"),
            versions: history::parse(&history).expect("an unchanged history"),
            is_block: field("block").is_some(),
            supersedes,
            expires_ms: at.zip(days).map(|(at, days)| at + days * DAY_MS),
            text,
        }
    }

    /// Whether it is what its history says.
    pub fn is_faithful(&self) -> bool {
        self.versions.last().is_none_or(|last| last.text == self.text)
    }

    /// Its version, or the version that it gets when it is accepted unchanged.
    pub fn version(&self) -> u32 {
        self.versions.last().map_or(1, |last| last.n)
    }

    /// Its frontmatter.
    fn manifest(&self) -> Value {
        let parts = frontmatter::split(&self.text).expect("it has frontmatter");
        yaml::parse(&self.text[parts.yaml]).0.expect("it is read").to_json()
    }

    /// Whether it is active although no gate passed its text.
    fn is_never_gated(&self) -> bool {
        let body = |text: &str| {
            let text = text.replace("\r\n", "\n");
            text.split("\n---").nth(1).map(|body| body.trim().to_owned()).expect("a body")
        };
        let own = body(&self.text);
        let is_gated = |one: &Version| one.event == "promoted" && body(&one.text) == own;
        self.status == "active" && !self.versions.iter().any(is_gated)
    }

    /// Whether it is woven, for the operators that it is for.
    fn is_in_force(&self, world: &World) -> bool {
        let lasts = self.expires_ms.is_none_or(|at| at > world.now_ms());
        self.status == "active" && self.is_faithful() && lasts
    }

    fn token(&self) -> String {
        tokens(&self.text).into_iter().next_back().expect("every text has its token")
    }
}

/// The tokens that are in a text.
pub fn tokens(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| word.starts_with("tok") && word.ends_with('x')).map(str::to_owned).collect()
}

/// The prompts of all operators.
pub async fn prompts(world: &World) -> Vec<ComposedPrompt> {
    let mut prompts = Vec::new();
    for slug in &world.operators {
        let request = WeaveRequest::new(WeaveTarget::Operator((*slug).to_owned()));
        let woven = world.quorate.weave(request).await;
        prompts.push(woven.unwrap_or_else(|stop| panic!("{stop}: {}", world.story())).value);
    }
    prompts
}

/// Their texts.
pub fn texts(prompts: &[ComposedPrompt]) -> Vec<String> {
    prompts.iter().map(|one| one.prompt.clone()).collect()
}

/// What is remembered from one step to the next.
#[derive(Default)]
pub struct History {
    histories: BTreeMap<String, Vec<Value>>,
    active: BTreeMap<String, usize>,
}

/// Checks everything against what must be; gives the prompts.
pub async fn assert_invariants(world: &mut World, memory: &mut History) -> Vec<ComposedPrompt> {
    // The expensive check, now and then: a violation stays until it is repaired.
    if world.chance.percent(35) {
        assert_checks(world);
    }
    let world = &*world;
    let read: Vec<PlaybookFile> = world.files().iter().map(|path| PlaybookFile::read(path)).collect();
    let prompts = prompts(world).await;
    for (operator, prompt) in world.operators.iter().zip(&prompts) {
        assert_prompt(world, operator, prompt, &read);
    }
    assert_histories(world, memory, &read);
    assert_index(world, &read);
    for operator in &world.operators {
        let now_ms = world.now_ms();
        let counts = |one: &&PlaybookFile| {
            one.status == "active"
                && one.expires_ms.is_none_or(|at| at > now_ms)
                && world.targets.get(&one.slug).is_some_and(|who| who.contains(operator))
        };
        let count = read.iter().filter(counts).count();
        // Only playbooks written by hand can exceed the cap.
        let before = memory.active.insert((*operator).to_owned(), count).unwrap_or(count);
        let by_hand = world.may_lag || !world.touched_slugs.is_empty();
        assert!(
            by_hand || count <= world.cap.max(before),
            "{operator} has {count} active: {}",
            world.story()
        );
    }
    prompts
}

/// B3, B6, B7: active, unexpired playbooks that match their history are present; no others are.
fn assert_prompt(world: &World, operator: &str, prompt: &ComposedPrompt, read: &[PlaybookFile]) {
    let there = tokens(&prompt.prompt);
    let mut expected = BTreeSet::new();
    for one in read {
        let is_for = |slug: &str| world.targets.get(slug).is_some_and(|who| who.contains(&operator));
        if !(is_for(&one.slug) && one.is_in_force(world)) {
            continue;
        }
        let Some(skipped) = prompt.skipped.iter().find(|skipped| skipped.id == one.slug) else {
            expected.insert(one.token());
            continue;
        };
        let by = skipped.why.split('`').nth(1).unwrap_or_default();
        if one.is_block && skipped.why.ends_with("replaces the same block") {
            let source = PartSource::Playbook(by.to_owned());
            assert!(prompt.woven.iter().any(|part| part.source == source), "{}", world.story());
            continue;
        }
        // A person can have made what was superseded active again.
        let other = read.iter().find(|other| other.slug == by);
        let takes_its_place = skipped.why.ends_with("takes its place")
            && other.is_some_and(|other| {
                other.is_in_force(world) && is_for(by) && other.supersedes.contains(&one.slug)
            });
        assert!(takes_its_place, "{} is skipped: {}\n  {}", one.slug, skipped.why, world.story());
    }
    assert_eq!(there, expected, "the prompt of {operator}, after\n  {}", world.story());
}

/// B7: versions rebuild the file, and entries are only ever added.
fn assert_histories(world: &World, memory: &mut History, read: &[PlaybookFile]) {
    for one in read {
        let by_hand = world.touched_slugs.contains(&one.slug);
        assert_eq!(one.is_faithful(), !by_hand, "{}, after\n  {}", one.slug, world.story());
        if one.versions.is_empty() || by_hand {
            continue;
        }
        let entries = one.manifest()["history"].as_array().expect("it has a history").clone();
        let before = memory.histories.insert(one.slug.clone(), entries.clone()).unwrap_or_default();
        assert!(entries.starts_with(&before), "{}: {before:#?} {entries:#?}\n  {}", one.slug, world.story());
        let sources = entries.iter().filter_map(|entry| entry["source"].as_str());
        let named: Vec<&str> = sources.filter_map(|source| source.split("#v").nth(1)).collect();
        let last = one.version().to_string();
        assert_eq!(named.last(), Some(&&*last), "{}, after\n  {}", one.slug, world.story());
    }
}

/// B5: the index is what the files say.
fn assert_index(world: &World, read: &[PlaybookFile]) {
    let there = std::fs::read_to_string(world.path("playbooks/_index.md")).unwrap_or_default();
    if !world.may_lag {
        let playbooks: Vec<(Playbook, bool)> = read
            .iter()
            .map(|one| {
                let playbook = serde_json::from_value(one.manifest()).expect("a playbook");
                (playbook, one.is_never_gated())
            })
            .collect();
        let playbooks = playbooks.iter().map(|(playbook, never_gated)| (playbook, *never_gated));
        assert_eq!(there, index(playbooks), "after\n  {}", world.story());
    }
}

/// B5: unchanged files are accepted; those changed by hand are named.
pub fn assert_checks(world: &World) {
    let paths = vec![world.root().to_owned()];
    let outcome = world.quorate.check(CheckRequest { paths, ..CheckRequest::default() });
    let outcome = outcome.unwrap_or_else(|stop| panic!("{stop}: {}", world.story()));
    let refused: Vec<String> = outcome
        .report
        .refusals
        .iter()
        .map(|one| format!("{}: {}", one.code.as_str(), one.body.message))
        .collect();
    let mutated = refused.iter().filter(|one| one.contains("history_mutation")).count();
    assert_eq!(mutated, world.touched_slugs.len(), "{refused:#?}, after\n  {}", world.story());
    // A status that was changed by hand may have further diagnostics.
    assert!(
        !world.touched_slugs.is_empty() || refused.is_empty(),
        "{refused:#?}, after\n  {}",
        world.story()
    );
}

/// B5: what happened stands once in the log and once in the ledger.
pub async fn assert_log(world: &World) {
    let log = std::fs::read_to_string(world.path("playbooks/_log.md")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().filter(|line| line.starts_with("- ")).collect();
    let records = match world.path(".quorate/ledger.db").is_file() {
        true => world.quorate.playbooks().log(None).await.expect("a ledger").value.events,
        false => Vec::new(),
    };
    let logged = records.iter().filter(|one| !COMPOSITION_KINDS.contains(&&*one.event));
    let logged: Vec<(String, String)> = logged
        .map(|one| {
            let data = one.data.as_ref().expect("it is kept");
            (one.event.clone(), data["slug"].as_str().expect("a slug").to_owned())
        })
        .collect();
    let said = lines.iter().map(|line| {
        let mut parts = line.split(" · ").skip(1).map(str::to_owned);
        let kind = parts.next().expect("an event");
        (kind, parts.next().expect("a slug").trim_matches('`').to_owned())
    });
    let said: Vec<(String, String)> =
        said.filter(|(kind, _)| !COMPOSITION_KINDS.contains(&&**kind)).collect();
    assert_eq!(said, logged, "after\n  {}", world.story());
}

/// A playbook was deleted or rewritten by hand: nothing is remembered of it.
pub fn forget(memory: &mut History, slug: &str) {
    memory.histories.remove(slug);
}
