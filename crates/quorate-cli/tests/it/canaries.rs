//! Canaries (X10): a thousand secrets of 25 kinds are put wherever something comes in, everything is run, and then they are
//! looked for wherever something has come out. They are in no file but the user's own, and were not shown.

mod secrets;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support;
#[cfg(feature = "mcp")]
use crate::support::mcp as client;
use crate::support::playbooks::workspace;
use rustix::process::{Pid, Signal, kill_process};
use secrets::{Canary, Search};
use serde_json::{Value, json};
use support::council::{COUNCIL, all_ship_except};
use support::{CommandOutput, TestDir, finish};

/// The seed of the secrets.
const SEED: u64 = 20_261_121;
/// How many there are.
const COUNT: usize = 1_000;
/// Where secrets come in; each place gets its share of every kind.
const WAYS: usize = 10;
/// Where the user's own files are, which keep what is in them.
const INPUTS: &str = "inputs";

/// A workspace, the secrets, and everything that was printed.
struct World {
    place: TestDir,
    canaries: Vec<Canary>,
    said: String,
}

impl World {
    fn new(redact: &str) -> World {
        let place = workspace::workspace(&format!(
            "defaults.executor = \"script\"\n\
             [executors.script]\nkind = \"script\"\npath = \"inputs/answers.json\"\n\
             [executors.broken]\ncommand = \"sh\"\nargs = [\"-c\", \"cat inputs/crash.txt >&2; exit 3\"]\n\
             [executors.talkative]\ncommand = \"sh\"\nargs = [\"inputs/printer.sh\"]\nenv = [{}]\n{redact}",
            (0..COUNT / WAYS).map(|at| format!("\"{}\"", variable(at))).collect::<Vec<_>>().join(", ")
        ));
        place.write("council.yaml", COUNCIL);
        // A member that prints its environment: amid talk, and in its answer.
        place.write(
            "inputs/printer.sh",
            "env >&2\nenv | base64 >&2\nprintf 'I looked around: '; env | tr '\\n' ' '\n\
             printf '\\n{\"would_block\": false, \"irreducible\": false, \"notes\": \"%s\", \"verdict\": \"SHIP\", \"reasoning\": \"x\"}\\n' \
             \"$(env | tr '\\n\\t\"\\\\' '    ')\"\n",
        );
        World { place, canaries: secrets::make(SEED, COUNT), said: String::new() }
    }

    /// The secrets of one way in.
    fn share(&self, way: usize) -> Vec<Canary> {
        let of_it = |at: &usize| at / secrets::KINDS % WAYS == way;
        (0..COUNT).filter(of_it).map(|at| self.canaries[at].clone()).collect()
    }

    /// A text of some length that has the secrets of a way in it.
    fn text(&self, way: usize) -> String {
        let lines = self.share(way).into_iter().enumerate();
        let line =
            |(at, one): (usize, Canary)| format!("{at}. Somebody has pasted {} here, alas.\n", one.text);
        format!("# What happened\n\n{}", lines.map(line).collect::<String>())
    }

    fn started(&mut self, arguments: &[&str], stdin: &str) -> CommandOutput {
        let stdin_file = self.place.path("inputs/stdin");
        std::fs::write(&stdin_file, stdin).expect("a file");
        let mut command = self.place.command(arguments);
        command.stdin(std::fs::File::open(stdin_file).expect("a file"));
        for (at, one) in self.share(6).iter().enumerate() {
            command.env(variable(at), &one.core);
        }
        let ran = finish(command.spawn().expect("the binary runs"));
        self.said.push_str(&ran.stdout);
        self.said.push_str(&ran.stderr);
        ran
    }

    fn run(&mut self, arguments: &[&str]) -> CommandOutput {
        self.started(arguments, "")
    }

    fn answers(&self, answers: &Value) {
        self.place.write("inputs/answers.json", answers.to_string());
    }

    /// Prints everything about every run.
    fn show(&mut self) {
        let runs: Vec<String> =
            self.place.runs().iter().map(|run| run["run"].as_str().expect("an id").to_owned()).collect();
        for (at, run) in runs.iter().enumerate() {
            let format = ["human", "json", "markdown", "sarif", "github"][at % 5];
            self.run(&["show", run, "--format", format]);
            if at % 4 == 0 {
                self.run(&["replay", run]);
            }
        }
    }

    /// Where which secrets are, besides the user's own files.
    fn found(&self) -> Vec<(String, Vec<usize>)> {
        let search = Search::new(&self.canaries);
        let mut found = Vec::new();
        search.below(self.place.root(), &self.place.path(INPUTS), &mut found);
        let said = search.of(self.said.as_bytes());
        if !said.is_empty() {
            found.push(("what was printed".to_owned(), said));
        }
        found
    }

    /// Each secret that was found, with its kind and its way in.
    #[track_caller]
    fn is_clean(&self) {
        let found = self.found();
        let messages = found.iter().map(|(place, which)| {
            let named = |at: &usize| {
                format!(
                    "  way {}, kind {}: {}\n",
                    at / secrets::KINDS % WAYS,
                    at % secrets::KINDS,
                    self.canaries[*at].text
                )
            };
            format!("{place}:\n{}", which.iter().map(named).collect::<String>())
        });
        assert!(found.is_empty(), "seed {SEED}\n{}", messages.collect::<String>());
    }
}

/// The variable of a secret; half of the names promise one, the others are passed on to members.
fn variable(at: usize) -> String {
    if at.is_multiple_of(2) { format!("CANARY_{at}_TOKEN") } else { format!("CANARY_{at}") }
}

/// JSON with some characters written by escapes.
fn escaped(value: &Value) -> String {
    value.to_string().replace('-', "\\u002d").replace('_', "\\u005f").replace("k", "\\u006b")
}

fn texts(canaries: &[Canary]) -> Vec<&str> {
    canaries.iter().map(|one| one.text.as_str()).collect()
}

/// Reviews: artifact, answers, failures, environment, override, sweep.
fn reviews(world: &mut World) {
    let answers = world.share(4);
    let all = texts(&answers);
    let quote = |range: std::ops::Range<usize>| {
        all[range].iter().map(|one| json!({"quote": one, "issue": one, "fix": one})).collect::<Vec<_>>()
    };
    let spoken = json!({"would_block": true, "notes": all[20..40].join(" and ")});
    world.answers(&all_ship_except(json!({
        "r1/skeptic": {"would_block": true, "score": 2, "notes": all.join("\n"), "findings": quote(0..10)},
        "r1/evidence": escaped(&spoken),
        "r1/strategy": {"$fail": all.join(" ")},
        "r1/voice_identity": [all[40..60].join("\n"), {"would_block": false, all[60]: {all[61]: all[62]}, "scores": {all[63]: 1}}],
        "adjudicate": {"verdict": "HOLD", "reasoning": all[70..80].join(", "), "revision_brief": all[80..].join("; ")},
    })));
    world.place.write("inputs/draft.md", world.text(0));
    world.place.write("inputs/crash.txt", world.text(5));
    let reviewed = world.run(&["review", "inputs/draft.md", "--format", "json"]).json();
    assert_eq!(reviewed["verdict"], "HOLD", "{reviewed}");
    let run = reviewed["run"].as_str().expect("an id").to_owned();
    world
        .run(&[
            "override",
            &run,
            "--by",
            "ada",
            "--verdict",
            "ship",
            "--reason",
            &texts(&world.share(1)).join(" "),
        ])
        .assert_code(0);
    let text = world.text(1);
    let named = world.share(1);
    world.started(&["review", "-", "--type", &named[2].text], &text);
    world.run(&["review", "inputs/draft.md", "--made-by", &named[4].text, "--trying", &named[6].text]);
    world.run(&["review", "inputs/draft.md", "--executor", &named[8].text, "--policy", &named[9].text]);
    world
        .place
        .write("inputs/named.yaml", COUNCIL.replace("id: skeptic", &format!("id: {:?}", named[5].text)));
    world.run(&["review", "inputs/draft.md", "--config", "inputs/named.yaml"]);
    world.run(&["review", "inputs/draft.md", "--executor", "broken"]);
    world.run(&["review", "inputs/draft.md", "--executor", "broken", "--format", "json"]);
    world.run(&["review", "inputs/draft.md", "--executor", "talkative", "--format", "json"]);
    world.run(&["review", "inputs/draft.md", "--executor", "rubric"]);
    let secret_name = format!("inputs/{}.md", world.share(2)[2].text);
    world.place.write(&secret_name, "Nothing is in here.\n");
    world.run(&["review", &secret_name]);
    world.run(&["sweep", "inputs", "--yes"]);
    world.run(&["audit"]);
}

/// Assemblies of every mode: subject, conversation, answers.
fn assemblies(world: &mut World) {
    let answers = world.share(7);
    let all = texts(&answers);
    let advice = json!({"severity": 7, "concern": all[..20].join(" "), "evidence": all[20..40], "suggestion": all[40..60].join(" ")});
    let text = world.text(2);
    let turns = world.share(3);
    let lines = turns.iter().map(|one| escaped(&json!({"role": "user", "content": one.text})));
    let conversation = lines.collect::<Vec<_>>().join("\n");
    for (mode, flag, rules, answer) in [
        ("advisory", "--conversation", "synthesis: {rules: [{id: all, kind: aggregate}]}\n", advice.clone()),
        (
            "voting",
            "--proposal",
            "synthesis: {rules: [{id: most, kind: majority}]}\n",
            json!({"vote": "yes", "rationale": all[60..80].join(" ")}),
        ),
        ("peer", "--topic", "", json!({"message": all[80..].join("\n"), "addressedTo": "*"})),
        ("hierarchy", "--request", "", advice),
    ] {
        let configuration = world.place.read("quorate.toml");
        let members: &[(&str, &str)] = match mode {
            "hierarchy" => &[("top", ""), ("leaf", "parent: top")],
            _ => &[("ana", ""), ("bob", "")],
        };
        support::assembly::write(&world.place, mode, members, rules);
        world.place.write("quorate.toml", configuration);
        world.answers(&json!({"ana": answer, "bob": escaped(&answer), "top": answer, "leaf": answer}));
        world.place.write("inputs/subject.md", &text);
        world.place.write("inputs/talk.jsonl", &conversation);
        let subject = if mode == "advisory" { "inputs/talk.jsonl" } else { "inputs/subject.md" };
        let ran = world.run(&["convene", "ASSEMBLY.md", flag, subject, "--format", "json"]);
        assert!(ran.code < 4, "{mode}: {ran:?}");
        world.run(&["convene", "ASSEMBLY.md", flag, subject]);
        world.run(&["convene", "ASSEMBLY.md", flag, subject, "--dry-run", "--format", "json"]);
        world.run(&["convene", "ASSEMBLY.md", flag, "inputs/subject.md", "--executor", "broken"]);
    }
    world.run(&["overlays", "list", "ASSEMBLY.md"]);
    world.run(&["runs"]);
}

/// A swarm: what is said, answered, remembered, and what hooks fail with.
fn swarm(world: &mut World) {
    let said = world.share(8);
    let all = texts(&said);
    world.place.write(
        "swarm.yaml",
        "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: talk\nparticipants:\n  \
         - {id: ada, executor: script, displayName: Ada, config: {path: inputs/turns.json}}\n  \
         - {id: bo, executor: script, displayName: Bo, config: {path: inputs/turns.json}}\n  \
         - {id: cy, executor: agent-cli, displayName: Cy, config: {command: sh, args: [-c, 'cat inputs/crash.txt >&2; exit 1']}}\n\
         substrate: {kind: file, path: talk.md}\nstate: {kind: fs, dir: states}\ndispatcher: {kind: mention}\n\
         hooks: {onTurnEnd: {command: sh, args: [-c, 'cat inputs/crash.txt >&2; exit 1']}}\n",
    );
    let turn = json!({"content": all[50..75].join("\n"), "meta": {"note": all[75]}, "stateUpdate": {"seen": all[76..90], all[90]: 1}});
    world.place.write("inputs/turns.json", json!({"ada": turn, "bo": all[91..].join(" ")}).to_string());
    for some in all[..25].chunks(5) {
        world.run(&["say", "swarm.yaml", &format!("I have {}", some.join(" and "))]).assert_code(0);
    }
    // A secret typed at the wrong place is not echoed.
    world.run(&["say", "swarm.yaml", all[17], all[18]]).assert_code(64);
    world.started(&["say", "swarm.yaml", "-", "--format", "json"], &all[25..50].join("\n"));
    let mentions = format!("@Ada @Bo @Cy, {}", all[3]);
    world.run(&["run", "swarm.yaml", "--say", &mentions, "--events", "events.jsonl", "--verbose"]);
    world.run(&["run", "swarm.yaml", "--say", "@Cy", "--executor", "talkative"]);
    world.run(&["run", "swarm.yaml", "--say", "@Ada", "--format", "json"]);
    for more in [&[][..], &["--records"], &["--format", "json"]] {
        world.run(&[&["log", "swarm.yaml"], more].concat());
    }
    world.run(&["state", "swarm.yaml", "ada"]);
    assert!(world.place.read("talk.md").contains("I have"), "something was said");
}

/// Playbooks: proposed by hand and by reflection, and refused.
fn playbooks(world: &mut World) {
    let proposed = world.share(9);
    let all = texts(&proposed);
    // A playbook is shorter than the persona that it is for.
    let short: Vec<&str> = all.iter().filter(|one| one.len() < 120).copied().collect();
    let deltas = |slug: &str, of: &[&str]| {
        let one = |(at, some): (usize, &[&str])| {
            let body = format!("Mind the shelf. {}", some.join(" and "));
            workspace::delta(
                &format!("{slug}-{at}"),
                json!({"title": format!("About {}", some[0]), "body": body}),
            )
        };
        of.chunks(2).enumerate().map(one).collect::<Vec<Value>>()
    };
    let by_hand = json!({"deltas": deltas("hand", &short[..20])}).to_string();
    // A proposal is judged by the default executor if it asks a model, so its table has to be usable.
    world.answers(&json!({}));
    let ran = world.started(&["playbook", "propose", "-"], &by_hand);
    // Without their distinguishing parts, some of them say the same.
    assert!(ran.stdout.contains("hand-0 is in shadow"), "{ran:?}");
    world.started(&["playbook", "propose", "-"], &format!("{{\"op\": \"add\", \"slug\": \"{}\"}}", all[3]));
    let mut learned = deltas("learned", &short[20..60]);
    learned.push(json!({"op": all[4], "slug": all[6]}));
    let deltas = json!({"deltas": learned});
    world.answers(&all_ship_except(json!({"reflect": deltas, "reflect/alice": deltas, "alice": deltas})));
    world.run(&["review", "inputs/draft.md", "--made-by", "alice"]);
    world.run(&["playbook", "reflect", "--operator", "alice", "--executor", "script"]);
    for arguments in [
        &["playbook", "list"][..],
        &["playbook", "show", "hand-0"],
        &["weave", "alice"],
        &["playbook", "promote", "hand-0", "--gate", "human"],
        &["check", "."],
    ] {
        world.run(arguments);
    }
    // Diagnostics quote the line.
    world.place.write(
        "inputs/council.yaml",
        format!("deliberators: {:?}\nnothing_like_it: {:?}\n", all[40], all[42]),
    );
    world.run(&["check", "inputs/council.yaml"]);
    world.run(&["check", "inputs/council.yaml", "--format", "json"]);
    world.run(&["review", "inputs/draft.md", "--config", "inputs/council.yaml"]);
}

/// MCP: texts that are given, answers, what is posted, and what is refused.
#[cfg(feature = "mcp")]
fn calls(world: &mut World) {
    let given = world.share(1);
    let all = texts(&given);
    let text = world.text(0);
    let calls = [
        ("council_review", json!({"text": text, "name": format!("{}.md", all[2]), "type": "memo"})),
        ("council_review", json!({"path": format!("inputs/{}.md", all[3])})),
        ("council_review", json!({"path": "inputs/draft.md", "executor": "broken"})),
        ("council_review", json!({"path": "inputs/draft.md", "executor": all[4]})),
        (
            "assembly_convene",
            json!({"assembly": "ASSEMBLY.md", "request": {"text": text, "name": "subject.md"}}),
        ),
        ("assembly_convene", json!({"assembly": all[5], all[6]: 1})),
        (
            "post_message",
            json!({"conversationId": "talk", "content": all[7..40].join("\n"), "metadata": {"note": all[41]}}),
        ),
        ("get_messages", json!({"conversationId": "talk"})),
        ("run_show", json!({"run": all[8]})),
    ];
    let run = world.place.runs()[0]["run"].clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let said = runtime.block_on(async {
        let client = client::Client::stdio(&world.place, &["--manifest", "swarm.yaml"]).await;
        let mut said = client.tools().await.join(" ");
        for (tool, arguments) in calls.into_iter().chain([("run_show", json!({"run": run}))]) {
            if client.tools().await.iter().any(|one| one == tool) {
                said.push_str(&client.text_of_call(tool, arguments).await);
            }
        }
        client.close().await;
        said
    });
    world.said.push_str(&said);
}

/// A session with a council and assemblies.
fn decide(world: &mut World) {
    reviews(world);
    assemblies(world);
}

/// A session with a swarm, playbooks and other machines.
fn work(world: &mut World) {
    world.place.write("inputs/draft.md", world.text(0));
    world.place.write("inputs/crash.txt", world.text(5));
    swarm(world);
    playbooks(world);
    #[cfg(feature = "mcp")]
    calls(world);
}

#[test]
fn what_decides_keeps_no_secret() {
    // X10
    let mut world = World::new("");
    decide(&mut world);
    world.show();
    world.is_clean();
}

#[test]
fn what_works_keeps_no_secret() {
    // X10
    let mut world = World::new("");
    work(&mut world);
    world.show();
    world.is_clean();
}

/// The searches above work: without redaction, the secrets of each of these inputs are found.
#[track_caller]
fn is_found(does: fn(&mut World), ways: &[(usize, usize)]) {
    let mut world = World::new("[redact]\nbuiltin = false\nenvironment = false\n");
    does(&mut world);
    let found = world.found();
    let which: BTreeSet<usize> = found.iter().flat_map(|(_, which)| which).copied().collect();
    let by_way = |way: usize| which.iter().filter(|at| *at / secrets::KINDS % WAYS == way).count();
    for place in ["ledger.db", "printed"] {
        assert!(found.iter().any(|(one, _)| one.contains(place)), "nothing in {place}");
    }
    for (way, least) in ways {
        let count = by_way(*way);
        assert!(count >= *least, "{count} of what comes in by way {way} are found");
    }
}

#[test]
fn what_decides_would_keep_them() {
    // The log keeps the last lines before a crash.
    is_found(decide, &[(0, 100), (1, 100), (2, 100), (3, 90), (4, 100), (5, 4), (6, 100), (7, 100)]);
}

#[test]
fn what_works_would_keep_them() {
    is_found(work, &[(0, 100), (1, 30), (5, 4), (6, 100), (8, 80), (9, 40)]);
}

#[test]
fn an_interruption_is_heard_while_a_large_text_is_redacted() {
    // X10
    let place = TestDir::scripted(&all_ship_except(json!({})));
    // A pattern that reads to the end from every character.
    let settings = format!("{}[redact]\npatterns = ['q*b|q']\n", place.read("quorate.toml"));
    place.write("quorate.toml", settings);
    place.write("draft.md", "q".repeat(1 << 20));
    let child = place.start(&["review", "draft.md"]);
    let ledger = place.path(".quorate/ledger.db");
    support::wait_until(Duration::from_secs(30), "the ledger", || ledger.exists());
    // Redaction is what comes next, and would take days.
    std::thread::sleep(Duration::from_secs(2));
    kill_process(Pid::from_child(&child), Signal::INT).expect("it is ours");
    let ran = finish(child);
    assert_eq!((ran.code, &*ran.stdout), (130, ""), "{ran:?}");
}

#[test]
fn a_pattern_of_quorate_toml_holds() {
    // X10: quorate.toml, and not the council's file alone
    let mut world = World::new("[redact]\nbuiltin = false\npatterns = ['project-[a-z]+']\n");
    world.place.write("inputs/draft.md", "It is about project-bluebird.\n");
    world.answers(&all_ship_except(json!({})));
    world.run(&["review", "inputs/draft.md"]).assert_code(0);
    let run = world.place.only_run();
    let shown = world.run(&["show", &run, "--format", "json"]).assert_code(0).stdout;
    assert!(!shown.contains("bluebird"), "{shown}");
}
