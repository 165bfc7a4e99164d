//! A workspace from a seed: operators with personas, playbooks by hand, a clock that is set, and everything that can be
//! done to playbooks. What must hold afterwards, `oracle.rs` says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use quorate::playbook::{Approval, Approver, GateClosed};
use quorate::{Error, ErrorKind, Quorate, Trust};
use quorate_kernel::clock::Clock;
use quorate_testkit::scripted::Rng;
use tempfile::TempDir;

/// A day in milliseconds.
pub const DAY_MS: i64 = 86_400_000;

/// The operators: slug, role, and whether it has a persona.
pub const OPERATORS: [(&str, &str, bool); 3] =
    [("alice", "role/librarian", true), ("bob", "role/librarian", true), ("carol", "role/engineer", false)];

/// Targets of playbooks as YAML, with the operators that they match.
const TARGETS: [(&str, &[&str]); 6] = [
    ("targets: [{kind: operator, ref: alice}]", &["alice"]),
    ("targets: [{kind: operator, ref: operator/bob}]", &["bob"]),
    ("targets: [{kind: role, ref: librarian}]", &["alice", "bob"]),
    ("targets: [{kind: operator, ref: \"*o*\"}]", &["bob", "carol"]),
    ("selector: {role: librarian}", &["alice", "bob"]),
    ("selector: {identity: [alice, carol]}", &["alice", "carol"]),
];

/// A clock that is where it is put.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A person who says what was drawn.
pub struct FixedAnswer(pub bool);

impl Approver for FixedAnswer {
    fn ask(&mut self, _: &str) -> Result<Approval, GateClosed> {
        Ok(Approval { yes: self.0, why: "Drawn.".to_owned(), by: "ada".to_owned() })
    }
}

/// The workspace, and what is known of it.
pub struct World {
    dir: TempDir,
    hands: Arc<ManualClock>,
    pub quorate: Quorate,
    pub chance: Rng,
    /// The slugs of the existing operators.
    pub operators: Vec<&'static str>,
    /// The operators of each playbook that was ever proposed or written.
    pub targets: BTreeMap<String, Vec<&'static str>>,
    /// The most active playbooks of an operator.
    pub cap: usize,
    /// The slugs that were changed by hand behind their histories' backs.
    pub touched_slugs: BTreeSet<String>,
    /// Whether files were changed by hand since the index was written.
    pub may_lag: bool,
    /// What was done, for who reads a failure.
    pub steps: Vec<String>,
    /// How many tokens were handed out.
    tokens: u64,
}

impl World {
    pub fn from_seed(seed: u64) -> World {
        let mut chance = Rng::from_seed_and_name(seed, "playbooks");
        let memory = Path::new("/dev/shm");
        let prefix = "quorate-lives-";
        let dir = match memory.is_dir() {
            true => TempDir::with_prefix_in(prefix, memory),
            false => TempDir::with_prefix(prefix),
        };
        let dir = dir.expect("a directory");
        let hands = Arc::new(ManualClock(AtomicI64::new(1_800_000_000_000)));
        let quorate = Quorate::builder()
            .workspace(dir.path())
            .state_dir(dir.path().join("state"))
            .trust(Trust::Workspace)
            .user("ada")
            .clock(Arc::clone(&hands) as Arc<dyn Clock>)
            .build()
            .expect("an empty workspace");
        let operators = OPERATORS.iter().take(2 + usize::from(chance.percent(60)));
        let operators: Vec<&'static str> = operators.map(|one| one.0).collect();
        let cap = if chance.percent(50) { 12 } else { 2 };
        let mut world = World {
            dir,
            hands,
            quorate,
            chance,
            operators,
            targets: BTreeMap::new(),
            cap,
            touched_slugs: BTreeSet::new(),
            may_lag: true,
            steps: Vec::new(),
            tokens: 0,
        };
        world.write_workspace();
        world
    }

    fn write_workspace(&mut self) {
        self.write("quorate.toml", &format!("[playbooks]\nmax_active = {}\n", self.cap));
        for (slug, role, has_persona) in OPERATORS {
            if !self.operators.contains(&slug) {
                continue;
            }
            let prompt = format!(
                "You are {slug}, who helps people find what they are looking for in a library of many rooms.\n\n\
                 <!-- block: tone -->\nBe calm, and speak slowly when somebody is upset about a book.\n<!-- /block -->\n\n\
                 Say what you know, and say what you do not know. Nobody is ever in the way here.\n"
            );
            let persona =
                if has_persona { format!("persona: ws://personas/{slug}\n") } else { String::new() };
            let locks = if self.chance.percent(50) { "locks: [warmth]\n" } else { "" };
            let body = if has_persona { "Unused.\n" } else { &prompt };
            self.write(
                &format!("operators/{slug}/OPERATOR.md"),
                &format!("---\nid: {slug}\nname: {slug}\nrole: {role}\n{persona}{locks}---\n{body}"),
            );
            if has_persona {
                let voice = "voice: {register: calm and friendly}\n";
                self.write(
                    &format!("personas/{slug}/PERSONA.md"),
                    &format!(
                        "---\nschema: persona/v1\ntitle: {slug}\nname: {slug}\nversion: 1.0.0\ndescription: A librarian.\n{voice}---\n{prompt}"
                    ),
                );
            }
        }
        for _ in 0..self.chance.below(4) {
            let status = ["active", "active", "shadow", "archived"][self.pick(4)];
            let (slug, text) = self.manifest(status);
            let folder = ["", "role/", "deep/down/"][self.pick(3)];
            self.write(&format!("playbooks/{folder}{slug}.md"), &text);
        }
    }

    /// A handwritten playbook under a new slug.
    pub fn manifest(&mut self, status: &str) -> (String, String) {
        let slug = format!("hand-{}", self.tokens);
        let targets = self.target(&slug);
        let mut text = format!(
            "---\nschema: playbooks/v1\nslug: {slug}\ntitle: About {slug}. # as it came up\n{targets}\n"
        );
        let blocks = self.chance.percent(25);
        text.push_str(if blocks { "kind: block-replacement\nblock: tone\n" } else { "kind: overlay\n" });
        text.push_str("lock_check: []\nevidence: [{kind: run, ref: r1}]\n");
        text.push_str(&format!("status: {status}\n"));
        if self.chance.percent(50) {
            text.push_str(&format!("priority: {}\n", self.chance.below(75)));
        }
        let at = quorate_manifest::timestamp::format(self.now_ms() - 1_000);
        match self.chance.below(3) {
            0 => {}
            1 => text.push_str(&format!("created_at: \"{at}\"\n")),
            _ => {
                let days = 1 + self.chance.below(6);
                text.push_str(&format!("updated_at: \"{at}\"\nttl: P{days}D\n"));
            }
        }
        text.push_str(&format!("---\n{}\n", self.fragment()));
        (slug, if self.chance.percent(20) { text.replace('\n', "\r\n") } else { text })
    }

    /// Draws the target of a new playbook.
    pub fn target(&mut self, slug: &str) -> &'static str {
        let (yaml, who) = TARGETS[self.pick(TARGETS.len())];
        let there: Vec<&'static str> =
            who.iter().copied().filter(|one| self.operators.contains(one)).collect();
        self.targets.insert(slug.to_owned(), there);
        yaml
    }

    /// A unique text: its token is in no other.
    pub fn fragment(&mut self) -> String {
        self.tokens += 1;
        format!(
            "Whenever tok{}x comes up, name the room and the shelf,\nand offer to walk there together with the person who asks for it.",
            self.tokens
        )
    }

    pub fn new_slug(&mut self) -> String {
        self.tokens += 1;
        format!("made-{}", self.tokens)
    }

    pub fn pick(&mut self, end: usize) -> usize {
        usize::try_from(self.chance.below(end.max(1) as u64)).unwrap_or(0)
    }

    pub fn now_ms(&self) -> i64 {
        self.quorate.now_ms()
    }

    /// Time goes by.
    pub fn advance(&mut self, ms: i64) {
        self.hands.0.fetch_add(ms, Ordering::Relaxed);
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
        std::fs::write(path, text).expect("a file");
    }

    /// The playbooks' files, without histories and names that begin with `_`.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect_files(&self.path("playbooks"), &mut found);
        found.sort();
        found
    }

    /// The file of a playbook, by the slug that it was made under.
    pub fn file(&self, slug: &str) -> Option<PathBuf> {
        self.files().into_iter().find(|path| path.file_stem().is_some_and(|stem| stem == slug))
    }

    /// Notes a step; an internal error is never expected.
    pub fn note(&mut self, what: String, stop: Option<&Error>) {
        let said = stop.map_or(String::new(), |stop| format!(" -> {stop}"));
        self.steps.push(format!("{what}{said}"));
        if let Some(stop) = stop {
            assert_ne!(stop.kind(), ErrorKind::Bug, "{}", self.story());
        }
    }

    /// What was done so far.
    pub fn story(&self) -> String {
        self.steps.join("\n  ")
    }
}

fn collect_files(dir: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            collect_files(&path, found);
        } else if name.ends_with(".md") && !name.starts_with('_') && !name.ends_with(".history.md") {
            found.push(path);
        }
    }
}
