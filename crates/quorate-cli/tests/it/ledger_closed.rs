//! A ledger that is only read: a writing command is refused before any member is asked, and before anything else is
//! written. Commands that read still work.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;

use crate::support;
use sqlx::{Connection as _, SqliteConnection};
use support::council::all_ship;
use support::{CommandOutput, TestDir, assembly, finish};

const LEDGER: &str = ".quorate/ledger.db";

/// How it comes that nothing can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closed {
    /// A newer version made it.
    Newer,
    /// The file is protected.
    File,
    /// So is everything.
    All,
}

const EVERY: [Closed; 3] = [Closed::Newer, Closed::File, Closed::All];

fn newer(path: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let url = format!("sqlite://{}", path.display());
        let mut sqlite = SqliteConnection::connect(&url).await.expect("it opens");
        sqlx::raw_sql("PRAGMA user_version = 99").execute(&mut sqlite).await.expect("it is written");
        sqlite.close().await.expect("it closes");
    });
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

/// Gives every file and directory a mode.
fn modes(dir: &Path, file: u32, directory: u32) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => modes(&path, file, directory),
            false => mode(&path, file),
        }
    }
    mode(dir, directory);
}

impl Closed {
    /// Closes a place's ledger.
    fn close(self, place: &TestDir) {
        match self {
            Closed::Newer => newer(&place.path(LEDGER)),
            Closed::File => {
                // Keys that others can read are refused for their own sake.
                let _ = std::fs::remove_dir_all(place.path(".quorate/keys"));
                modes(place.root(), 0o666, 0o777);
                mode(&place.path(LEDGER), 0o444);
            }
            Closed::All => modes(place.root(), 0o444, 0o555),
        }
    }

    /// Runs as a user whom modes hold for; nothing stops root.
    fn run(self, place: &TestDir, arguments: &[&str]) -> CommandOutput {
        let command = place.command(arguments);
        let mut started = match self != Closed::Newer && rustix::process::geteuid().is_root() {
            false => command,
            true => {
                let mut command_as_other = Command::new("setpriv");
                command_as_other.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
                command_as_other.arg(command.get_program()).args(command.get_args());
                command_as_other.current_dir(place.root()).env_clear();
                let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
                command_as_other.envs(set).stdin(std::process::Stdio::null());
                command_as_other.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
                command_as_other
            }
        };
        // A directory that belongs to another user, or that all users can write, works for users who trust it.
        let state = tempfile::tempdir().expect("a directory");
        let (folder, safe) =
            (state.path().join("quorate"), place.root().canonicalize().expect("it is there"));
        std::fs::create_dir(&folder).expect("a directory");
        let trusted = serde_json::json!({"v": 1, "files": {}, "safe_directories": [safe]});
        std::fs::write(folder.join("trust.json"), trusted.to_string()).expect("a file");
        if rustix::process::geteuid().is_root() && self != Closed::Newer {
            let all = [state.path().to_owned(), folder.clone(), folder.join("trust.json")];
            all.iter().for_each(|path| chown(path, Some(65534), Some(65534)).expect("root may give it away"));
        }
        started.env("QUORATE_TRUST", "1").env("XDG_STATE_HOME", state.path());
        finish(started.spawn().expect("it starts"))
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        // So that the directory can be removed.
        let all = Command::new("chmod").args(["-R", "u+rwX"]).arg(self.0.root()).status();
        assert!(all.is_ok_and(|status| status.success()));
    }
}

/// Opens a place again at the end.
struct Open<'a>(&'a TestDir);

fn text(place: &TestDir, name: &str) -> String {
    std::fs::read_to_string(place.path(name)).unwrap_or_default()
}

#[test]
fn a_swarm_asks_and_appends_nothing_that_could_not_be_recorded() {
    for closed in EVERY {
        let place = TestDir::with("answers.json", r#"{"ada": "I am here."}"#);
        let manifest = "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: talk
participants:
  - {id: ada, executor: script, displayName: Ada, config: {path: answers.json}}
substrate: {kind: file, path: talk.md}
dispatcher: {kind: mention}
";
        place.write("swarm.yaml", manifest);
        place.run(&["run", "swarm.yaml", "--say", "@Ada?"]).assert_code(0);
        place.run(&["say", "swarm.yaml", "@Ada, once more?"]).assert_code(0);
        let (before, open) = (text(&place, "talk.md"), Open(&place));
        closed.close(&place);
        for arguments in [&["run", "swarm.yaml"][..], &["run", "swarm.yaml", "--say", "@Ada, and now?"]] {
            let refused = closed.run(&place, arguments).assert_code(5);
            refused.assert_stderr_contains("quorate:ledger_closed");
            assert!(!refused.stderr.contains("was completed"), "{closed:?}: {}", refused.stderr);
            assert_eq!(text(&place, "talk.md"), before, "{closed:?}: nothing is said");
        }
        closed.run(&place, &["log", "swarm.yaml"]).assert_code(0);
        drop(open);
    }
}

#[test]
fn a_council_and_an_assembly_ask_no_member() {
    for closed in [Closed::Newer, Closed::File] {
        let place = TestDir::scripted(&all_ship());
        // A member that is asked leaves a trace.
        let asks = "[defaults]\nexecutor = \"asked\"\n[executors.asked]\nkind = \"agent-cli\"\ncommand = \"sh\"\nargs = [\"-c\", \"touch asked\"]\n";
        let reviewed = place.review(&["draft.md"]);
        let run = reviewed["run"].as_str().expect("an id").to_owned();
        place.write("other.md", "Another draft.\n");
        assembly::write(&place, "voting", &[("ada", ""), ("bob", "")], "");
        place.write("quorate.toml", asks);
        place.write("subject.md", "# A region\n\nResolution: open it.\n");
        let (log, open) = (text(&place, ".quorate/council_log.jsonl"), Open(&place));
        closed.close(&place);
        for arguments in [
            &["review", "draft.md"][..],
            &["sweep"],
            &["convene", "ASSEMBLY.md", "--proposal", "subject.md", "--executor", "asked"],
            &["override", &run, "--by", "ada", "--verdict", "HOLD", "--reason", "a number is wrong"],
            &["resume", &run],
        ] {
            let refused = closed.run(&place, arguments).assert_code(5);
            refused.assert_stderr_contains("quorate:ledger_closed");
            assert!(!place.path("asked").exists(), "{closed:?}: {arguments:?}");
        }
        assert_eq!(text(&place, ".quorate/council_log.jsonl"), log);
        for arguments in
            [&["runs"][..], &["show", &run], &["replay", &run], &["ledger", "verify"], &["doctor"]]
        {
            let looked = closed.run(&place, arguments);
            assert!(!looked.stderr.contains("ledger_closed"), "{closed:?}: {arguments:?}: {looked:?}");
        }
        drop(open);
    }
}
