//! The queue through the real binary: machines (directories) that share a database, some that queue and some that work.
//! Needs the server that `scripts/services start postgres` starts, named by `QUORATE_TEST_POSTGRES`.

#![cfg(feature = "postgres")]

#[cfg(feature = "nats")]
mod chaos;
#[cfg(feature = "nats")]
mod events;
#[cfg(feature = "nats")]
mod failover;
mod faults;
mod limits;
mod observed;
#[cfg(feature = "nats")]
mod parted;
mod signed;

use std::collections::BTreeSet;
use std::future::Future;
use std::process::Child;
use std::time::Duration;

use crate::support;
use crate::support::postgres as server;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use server::Database;
use support::council::{COUNCIL, all_ship, all_ship_except};
use support::{CommandOutput, TestDir, assembly, console, finish, wait_until};

const SOON: Duration = Duration::from_secs(30);

fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

fn database() -> Option<Database> {
    wait(Database::new())
}

/// A directory whose commands use the shared ledger.
struct Machine<'a> {
    place: TestDir,
    database: &'a Database,
}

impl<'a> Machine<'a> {
    /// One whose members answer so. All machines have the ledger's key.
    fn new(database: &'a Database, answers: &Value, settings: &str) -> Machine<'a> {
        Machine { place: TestDir::scripted_slowly(answers, settings), database }
    }

    /// One with so many drafts.
    fn with_drafts(database: &'a Database, drafts: usize) -> Machine<'a> {
        let machine = Machine::new(database, &all_ship(), "");
        machine.place.write(
            "council.yaml",
            format!(
                "{COUNCIL}tier_classifier: {{default_tier: 2}}\ntier_rules:\n  tier_1: {{post: [\"*.md\"]}}\n\
                 watch: {{paths: [./drafts/]}}\n"
            ),
        );
        for draft in 0..drafts {
            machine.place.write(
                &format!("drafts/{draft:02}.md"),
                format!("The meeting number {draft} moved to Tuesday.\n"),
            );
        }
        machine
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.place.command(arguments);
        command.env("QUORATE_LEDGER", &self.database.url).env("QUORATE_TRUST", "1");
        command.spawn().expect("the binary runs")
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        finish(self.start(arguments))
    }

    fn enqueue(&self, more: &[&str]) -> Vec<Value> {
        let mut arguments = vec!["sweep", "--since", "all", "--enqueue", "--format", "json"];
        arguments.extend(more);
        let files = self.run(&arguments).assert_code(0).json();
        files["files"].as_array().expect("a list").clone()
    }

    fn tasks(&self) -> Vec<Value> {
        let listed =
            self.run(&["queue", "list", "--limit", "1000", "--format", "json"]).assert_code(0).json();
        listed["tasks"].as_array().expect("a list").clone()
    }

    fn states(&self) -> Vec<String> {
        self.tasks().iter().map(|task| task["state"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// What a worker that ends by itself did, by line.
    fn work(&self, more: &[&str]) -> Vec<Value> {
        let mut arguments = vec!["worker", "--until-empty", "--format", "json"];
        arguments.extend(more);
        let worked = self.run(&arguments);
        assert!([0, 3].contains(&worked.code), "{worked:?}");
        worked.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}

fn signal(child: &Child, signal: Signal) {
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(id, signal).expect("it is there");
}

#[test]
fn what_four_machines_queue_at_once_is_held_once_and_logged_where_it_was_queued() {
    let Some(database) = database() else { return };
    let machines: Vec<Machine<'_>> = (0..4).map(|_| Machine::with_drafts(&database, 9)).collect();
    let sweep = ["sweep", "--since", "all", "--enqueue", "--format", "json"];
    let queueing: Vec<Child> = machines.iter().map(|machine| machine.start(&sweep)).collect();
    let mut new = 0;
    for child in queueing {
        let files = finish(child).assert_code(0).json();
        new += files["files"].as_array().unwrap().iter().filter(|file| file["fate"] == "queued").count();
    }
    assert_eq!(new, 9);
    // Workers with nothing of the drafts, and nothing but the same executor.
    let workers = [Machine::new(&database, &all_ship(), ""), Machine::new(&database, &all_ship(), "")];
    let working: Vec<Child> =
        workers.iter().map(|worker| worker.start(&["worker", "--until-empty", "--slots", "3"])).collect();
    for child in working {
        finish(child).assert_code(0);
    }
    let runs = machines[0].run(&["runs", "--limit", "100", "--format", "json"]).assert_code(0).json();
    let runs = runs["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 9);
    assert!(runs.iter().all(|run| run["verdict"] == "SHIP"), "{runs:?}");
    assert_eq!(machines[0].states(), vec!["done"; 9]);
    // Their lines are in the logs of those who queued them, each once.
    for machine in &machines {
        machine.run(&["runs"]).assert_code(0);
        machine.run(&["ledger", "verify"]).assert_code(0);
    }
    let logged: Vec<String> = machines
        .iter()
        .flat_map(|machine| machine.place.log())
        .map(|line| line["run"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!((logged.len(), logged.iter().collect::<BTreeSet<_>>().len()), (9, 9), "{logged:?}");
    assert!(workers.iter().all(|worker| worker.place.log().is_empty()));
    let run = runs[0]["run"].as_str().unwrap();
    workers[1].run(&["replay", run]).assert_code(0);
    // No text stays in the queue, and no lease.
    for table in ["task_text", "task_uses", "lease"] {
        assert_eq!(wait(database.count(table)), 0, "{table}");
    }
    // The same again is known; forced, each is held once more.
    assert!(machines[3].enqueue(&[]).iter().all(|file| file["fate"] == "already_judged"));
    let again = machines[3].enqueue(&["--force"]);
    assert!(again.iter().all(|file| file["fate"] == "queued"), "{again:?}");
    assert!(machines[2].enqueue(&["--force"]).iter().all(|file| file["fate"] == "queued_before"));
    assert_eq!(workers[0].work(&[]).len(), 9);
    assert_eq!(wait(database.count("run")), 18);
}

#[test]
fn a_sweep_can_wait_for_its_verdicts() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 2);
    machine.run(&["doctor"]);
    let waiting = machine.start(&["sweep", "--since", "all", "--enqueue", "--wait", "--format", "json"]);
    wait_until(SOON, "the tasks are queued", || machine.tasks().len() == 2);
    let worker = Machine::new(&database, &all_ship(), "");
    assert_eq!(worker.work(&[]).len(), 2);
    let files = finish(waiting).assert_code(0).json();
    assert!(files["files"].as_array().unwrap().iter().all(|file| file["verdict"] == "SHIP"), "{files}");
    assert_eq!(machine.place.log().len(), 2);
}

#[test]
fn what_workers_do_is_watched_from_another_machine() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 2);
    machine.enqueue(&[]);
    let mut watching = machine.place.command(&["watch", "--all", "--format", "json"]);
    let watching = watching.env("QUORATE_LEDGER", &database.url).spawn().expect("the binary runs");
    // It has looked where the ledger ends.
    std::thread::sleep(Duration::from_secs(1));
    let worker = Machine::new(&database, &all_ship(), "");
    let ended = worker.work(&[]);
    std::thread::sleep(Duration::from_millis(1_500));
    signal(&watching, Signal::TERM);
    let watched = finish(watching).assert_code(0);
    let events: Vec<Value> = watched.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for run in ended.iter().map(|end| end["run"].as_str().unwrap()) {
        let of_run: Vec<&Value> = events.iter().filter(|event| event["run"] == run).collect();
        let kinds: Vec<&str> = of_run.iter().map(|event| event["kind"].as_str().unwrap()).collect();
        assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("opened", "ended"), "{kinds:?}");
        assert_eq!(kinds.iter().filter(|kind| **kind == "answered").count(), 9, "{kinds:?}");
        assert!(of_run.iter().any(|event| event["outcome"] == "SHIP"));
        let again = worker.run(&["watch", run, "--format", "json"]).assert_code(0);
        let again: Vec<Value> =
            again.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(again.iter().collect::<Vec<_>>(), of_run);
    }
}

#[test]
fn a_worker_with_the_key_of_another_ledger_does_not_sign_this_one() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 1);
    machine.enqueue(&[]);
    let worker = Machine::new(&database, &all_ship(), "");
    // It has a key of its own, of a ledger in a file.
    worker.place.run(&["review", "draft.md"]).assert_code(0);
    let worked = worker.run(&["worker", "--until-empty"]).assert_code(0);
    worked
        .assert_stderr_contains("quorate:ledger_key_missing")
        .assert_stderr_contains("that created the ledger");
    machine.run(&["ledger", "verify"]).assert_code(0);
    machine.run(&["ledger", "checkpoint"]).assert_code(0);
}

#[test]
fn lines_go_to_the_workspace_that_queued_and_to_no_other_at_its_path() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 1);
    for name in ["council.yaml", "quorate.toml", "answers.json", "drafts/00.md"] {
        machine.place.write(&format!("x/{name}"), machine.place.read(name));
    }
    let run_in = |folder: &str, arguments: &[&str]| {
        let mut command = machine.place.command_in(folder, arguments);
        command.env("QUORATE_LEDGER", &database.url).env("QUORATE_TRUST", "1");
        finish(command.spawn().expect("the binary runs")).assert_code(0)
    };
    std::fs::remove_file(machine.place.path("quorate.toml")).unwrap();
    std::fs::remove_file(machine.place.path("council.yaml")).unwrap();
    run_in("x", &["sweep", "--since", "all", "--enqueue"]);
    // Another machine has a workspace at the same path.
    std::fs::rename(machine.place.path("x"), machine.place.path("y")).unwrap();
    for name in ["council.yaml", "quorate.toml", "answers.json"] {
        machine.place.write(&format!("x/{name}"), machine.place.read(&format!("y/{name}")));
    }
    run_in("x", &["worker", "--until-empty"]);
    run_in("x", &["runs"]);
    run_in("y", &["runs"]);
    assert!(!machine.place.path("x/.quorate/council_log.jsonl").exists());
    assert_eq!(machine.place.read("y/.quorate/council_log.jsonl").lines().count(), 1);
}

#[test]
fn what_a_worker_may_not_run_is_dead_at_once_and_an_absent_answer_is_tried_again() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 1);
    machine.enqueue(&[]);
    let bare = Machine { place: TestDir::new(), database: &database };
    let ended = bare.work(&[]);
    assert_eq!(ended[0]["end"], "dead");
    assert!(ended[0]["why"].as_str().unwrap().contains("asks the executor `scripted`"), "{ended:?}");
    assert_eq!(wait(database.count("run")), 0);
    machine.run(&["queue", "list", "--dead"]).assert_code(0).assert_stdout_contains("scripted");

    machine
        .run(&["queue", "retry", "--all-dead"])
        .assert_code(0)
        .assert_stdout_contains("1 task is tried again");
    let failing = Machine::new(&database, &all_ship_except(json!({"adjudicate": "no JSON"})), "");
    let child = failing.start(&["worker", "--format", "json"]);
    wait_until(SOON, "the task is due for another try", || {
        wait(database.count("task WHERE state = 'ready' AND attempts = 1 AND not_before_ms > 0")) == 1
    });
    let waits = wait(database.count(
        "task WHERE not_before_ms - EXTRACT(EPOCH FROM clock_timestamp()) * 1000 BETWEEN 2000 AND 12600",
    ));
    assert_eq!(waits, 1);
    failing.place.answers(&all_ship());
    wait(database.run("UPDATE task SET not_before_ms = 0"));
    wait_until(SOON, "it is done", || wait(database.count("task WHERE state = 'done'")) == 1);
    signal(&child, Signal::TERM);
    let stopped = finish(child).assert_code(0);
    let ends: Vec<Value> = stopped
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["end"].clone())
        .collect();
    assert_eq!(ends, ["later", "done"]);
    // The log has two lines: INCOMPLETE, then SHIP.
    machine.run(&["runs"]).assert_code(0);
    let words: Vec<Value> = machine.place.log().iter().map(|line| line["verdict"].clone()).collect();
    assert_eq!(words, ["INCOMPLETE", "SHIP"]);
    machine.run(&["ledger", "verify"]).assert_code(0);
}

#[test]
fn a_worker_that_is_stopped_gives_back_what_it_cannot_end() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 2);
    machine.enqueue(&[]);
    let slow = Machine::new(&database, &all_ship(), "delay = \"30s\"");
    let child = slow.start(&["worker", "--grace", "300ms", "--slots", "1", "--format", "json"]);
    wait_until(SOON, "it has a task", || wait(database.count("task WHERE state = 'leased'")) == 1);
    signal(&child, Signal::TERM);
    let stopped = finish(child).assert_code(0);
    assert!(stopped.stdout.contains("\"released\""), "{}", stopped.stdout);
    assert_eq!(machine.states(), ["ready", "ready"]);
    assert!(machine.tasks().iter().all(|task| task["attempts"] == 0));
    assert_eq!(wait(database.count("lease")), 0);
}

#[test]
fn an_assembly_is_convened_about_each_file_of_a_folder() {
    let Some(database) = database() else { return };
    let vote = |word: &str| assembly::vote_answer(word);
    let answers = json!({"ada": vote("yes"), "ben": vote("yes"), "cyd": vote("no")});
    let machine = Machine::new(&database, &answers, "");
    assembly::write(&machine.place, "voting", &[("ada", ""), ("ben", ""), ("cyd", "")], "");
    for proposal in 0..3 {
        machine
            .place
            .write(&format!("proposals/{proposal}.md"), format!("Resolution: open office {proposal}.\n"));
    }
    let convene = ["convene", "ASSEMBLY.md", "--proposal", "proposals", "--enqueue", "--format", "json"];
    let queued = machine.run(&convene).assert_code(0).json();
    assert_eq!(queued["queued"].as_array().unwrap().len(), 3, "{queued}");
    let worker = Machine::new(&database, &answers, "");
    worker.place.write("quorate.toml", machine.place.read("quorate.toml"));
    let ended = worker.work(&[]);
    assert!(ended.iter().all(|end| end["outcome"] == "pass"), "{ended:?}");
    let waited = machine.run(&[&convene[..], &["--wait"]].concat()).assert_code(0).json();
    let all = waited["queued"].as_array().unwrap();
    assert!(all.iter().all(|one| one["new"] == false && one["outcome"] == "pass"), "{waited}");
    let run = all[0]["run"].as_str().unwrap();
    let shown = worker.run(&["show", run, "--format", "json"]).json();
    assert_eq!(shown["assembly"], "board", "{shown}");
    worker.run(&["replay", run]).assert_code(0);
    machine.run(&["ledger", "verify"]).assert_code(0);
}

#[test]
fn secrets_do_not_enter_the_queue() {
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 0);
    let secret = ["ghp_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    machine.place.write("drafts/a.md", format!("The token is {secret}, and the meeting moved.\n"));
    assert_eq!(machine.enqueue(&[]).len(), 1);
    for (table, column) in [("task_text", "text"), ("task", "body"), ("task", "subject")] {
        assert_eq!(wait(database.count(&format!("{table} WHERE {column} LIKE '%{secret}%'"))), 0, "{table}");
    }
    assert!(wait(database.count("task_text WHERE text LIKE '%the meeting moved%'")) == 1);
}

#[test]
fn a_file_has_no_queue_and_a_command_is_not_queued() {
    let place = TestDir::scripted(&all_ship());
    for arguments in
        [&["queue", "status"][..], &["worker", "--until-empty"], &["sweep", "--since", "all", "--enqueue"]]
    {
        place.write("council.yaml", format!("{COUNCIL}watch: {{paths: [.]}}\n"));
        place.run(arguments).assert_code(5).assert_stderr_contains("quorate:queue_unavailable");
        assert!(!place.path(".quorate").exists(), "{arguments:?} made a ledger");
    }
    place.run(&["sweep", "--wait"]).assert_code(64);
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 1);
    let council = machine.place.read("council.yaml");
    let with_model = council.replace("builtin:evidence}", "builtin:evidence, model: m}");
    assert_ne!(with_model, council);
    for (council, said) in [
        (format!("{council}runtime: {{type: rubric}}\n"), "cannot queue `runtime` of council.yaml"),
        (with_model, "`scripted` asks no model"),
    ] {
        machine.place.write("council.yaml", council);
        let refused = machine.run(&["sweep", "--since", "all", "--enqueue"]).assert_code(5);
        refused.assert_stderr_contains(said);
        assert_eq!(wait(database.count("task")), 0);
    }
}

#[test]
fn the_page_about_workers_shows_what_happens() {
    let Some(database) = database() else { return };
    let page = include_str!("../../../../docs/workers.md");
    let page = format!("```sh\nexport QUORATE_LEDGER={}\n```\n{page}", database.url);
    let (place, parts) = (TestDir::new(), console::parts(&page));
    let all = console::run(&parts, place.root());
    assert!(all.len() > 4);
    all.iter().for_each(|said| console::compare("docs/workers.md", said));
}
