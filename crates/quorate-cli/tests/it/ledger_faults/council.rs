//! A council that is put through faults, and what has to hold afterwards.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::shim;
use crate::support::shim::Event;
use crate::support::shim::{Call, Fault, Shim};
use serde_json::{Value, json};
use sqlx::{Connection as _, Row as _, SqliteConnection};

use crate::ledger_faults::records::{self, block_on, consultations, of_kind};
use crate::support::council::ROSTER;
use crate::support::{CommandOutput, TestDir, finish};

/// The exit code of REVISE, which is what this council comes to.
pub(crate) const REVISE: i32 = 1;

/// A member that notes in `calls` who was asked and, where there is a trace, in that. Nothing but a shell's own commands:
/// it is started thousands of times.
const MEMBER: &str = r#"
while IFS= read -r line || [ -n "$line" ]; do
    case $line in
        'You are `'*)
            who=${line#*\`} who=${who%%\`*}
            case $line in
                *"round 1"*) who=r1/$who ;;
                *"round 2"*) who=r2/$who ;;
                *) who=adjudicate ;;
            esac ;;
    esac
done
echo "$who" >> calls
[ -z "$QUORATE_SHIM_TRACE" ] || printf 'ask 0 0 0 %s\n\n' "$who" >> "$QUORATE_SHIM_TRACE"
case $who in
    adjudicate) echo '{"verdict": "REVISE", "reasoning": "Three block, and a revision would do."}' ;;
    r2/voice_identity) echo '{"would_block": false, "irreducible": false}' ;;
    *) echo '{"would_block": true, "irreducible": false}' ;;
esac
"#;

/// What a process printed before its end, and which invocations it started.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// The invocations, in order.
    pub(crate) asked: Vec<String>,
    /// The report that was printed.
    pub(crate) report: Option<Value>,
}

impl Observed {
    /// By what was printed so far.
    pub(crate) fn new(place: &TestDir, stdout: &str) -> Observed {
        Observed { asked: place.asked(), report: report(stdout) }
    }

    /// By a trace.
    pub(crate) fn by(events: &[Event]) -> Observed {
        let asked = events.iter().filter(|one| one.call == Call::Ask).map(|one| one.path.clone());
        let out = events.iter().filter(|one| one.call == Call::Out).flat_map(|one| &one.bytes);
        let out = out.copied().collect::<Vec<u8>>();
        Observed { asked: asked.collect(), report: report(&String::from_utf8_lossy(&out)) }
    }
}

fn report(stdout: &str) -> Option<Value> {
    serde_json::from_str(stdout).ok().filter(|report: &Value| report["verdict"].is_string())
}

/// The shim; where it is unavailable, the reason is printed once.
pub(crate) fn shim() -> Option<&'static Shim> {
    static SHIM: OnceLock<Option<Shim>> = OnceLock::new();
    let built = || match Shim::build(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(shim) => Some(shim),
        Err(why) => {
            eprintln!("SKIPPED: {why}");
            None
        }
    };
    SHIM.get_or_init(built).as_ref()
}

/// A place with that council, and the command under test.
pub(crate) fn hardy() -> TestDir {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    place.write(
        "quorate.toml",
        "[defaults]\nexecutor = \"shell\"\n[executors.shell]\nkind = \"agent-cli\"\ncommand = \"sh\"\nargs = [\"member.sh\"]\n",
    );
    place.write("member.sh", MEMBER);
    place
}

/// The review that is disturbed.
pub(crate) const REVIEW: [&str; 4] = ["review", "draft.md", "--format", "json"];

impl TestDir {
    /// Where ledger and log are.
    pub(crate) fn quorate(&self) -> PathBuf {
        self.root().canonicalize().expect("it is there").join(".quorate")
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.path(".quorate/ledger.db")
    }

    /// Who was asked so far, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::fs::read_to_string(self.path("calls")).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// A command behind the shim, with a trace.
    pub(crate) fn traced(&self, shim: &Shim, arguments: &[&str], fault: Option<&Fault>) -> Command {
        let mut command = self.command(arguments);
        shim.preload(&mut command, &self.quorate());
        Shim::trace(&mut command, &self.path("trace"));
        if let Some(fault) = fault {
            Shim::fault(&mut command, fault);
        }
        command
    }

    /// Runs it to its end.
    pub(crate) fn disturbed(&self, shim: &Shim, arguments: &[&str], fault: Option<&Fault>) -> CommandOutput {
        finish(self.traced(shim, arguments, fault).spawn().expect("the binary runs"))
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        shim::read_trace(&self.path("trace")).expect("a trace")
    }
}

/// The invariants after any fault: a printed verdict is recorded, no other one is, and the
/// run can be completed with the same verdict without repeating a recorded invocation (X7).
pub(crate) fn holds(place: &TestDir, observed: &Observed) {
    // A process that died while it made the ledger has left a file with nothing in it to verify.
    if !observed.asked.is_empty() {
        place.verifies();
    }
    let Some((run, decided)) = one_run(place) else {
        assert_eq!(observed.asked, Vec::<String>::new(), "a member was asked before its run was durable");
        assert!(observed.report.is_none(), "a report was printed of a run that is not there");
        assert!(place.log().is_empty(), "a line of a run that is not there");
        place.run(&REVIEW).assert_code(REVISE);
        return ended(place, &one_run(place).expect("a run").0);
    };
    let before = records::records(&place.ledger(), &run);
    let kept: BTreeSet<String> = consultations(&before).into_keys().collect();
    let asked = |step: &str| observed.asked.iter().any(|one| one.starts_with(step));
    for (later, earlier) in [("r2/", "r1/"), ("adjudicate", "r2/")] {
        let all = ROSTER.iter().map(|member| format!("{earlier}{member}"));
        let lost: Vec<String> = all.filter(|one| asked(later) && !kept.contains(one)).collect();
        assert_eq!(lost, Vec::<String>::new(), "lost, although {later} was asked");
    }
    if let Some(report) = &observed.report {
        assert_eq!((&report["run"], &report["verdict"]), (&json!(run), &json!("REVISE")));
        assert_eq!(of_kind(&before, "outcome").len(), 1, "a verdict was printed and is not there");
    }
    let asked_before = place.asked().len();
    if decided.is_none() {
        place.run(&["resume", &run]).assert_code(REVISE);
    }
    let again: Vec<String> = place.asked().drain(asked_before..).filter(|one| kept.contains(one)).collect();
    assert_eq!(again, Vec::<String>::new(), "paid for twice");
    let after = records::records(&place.ledger(), &run);
    assert_eq!(after[..before.len()], before, "a record was changed");
    ended(place, &run);
}

/// The only run with its verdict, after the binary has recovered the ledger.
fn one_run(place: &TestDir) -> Option<(String, Option<String>)> {
    if !place.ledger().is_file() {
        return None;
    }
    assert!(place.runs().len() < 2, "{:?}", place.runs());
    records::runs(&place.ledger()).pop()
}

/// A run that came to its end as if nothing had happened.
fn ended(place: &TestDir, run: &str) {
    let records = records::records(&place.ledger(), run);
    let counts = consultations(&records);
    let whole = ROSTER.iter().flat_map(|member| [format!("r1/{member}"), format!("r2/{member}")]);
    let whole: BTreeSet<String> = whole.chain(["adjudicate".to_owned()]).collect();
    assert_eq!(counts.keys().cloned().collect::<BTreeSet<_>>(), whole);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    assert_eq!((of_kind(&records, "outcome").len(), of_kind(&records, "run.ended").len()), (1, 1));
    let lines = place.log();
    assert_eq!(lines.iter().filter(|line| line["span_id"] == run).count(), 1, "{lines:?}");
    assert_eq!(place.run(&["show", run, "--format", "json"]).assert_code(0).json()["verdict"], "REVISE");
    place.run(&["replay", run]).assert_code(0);
    assert!(place.path(".quorate/keys/ledger.ed25519").is_file(), "the ledger has no key of its own");
    place.verifies();
}

impl TestDir {
    /// Verifies the ledger, if it exists yet.
    pub(crate) fn verifies(&self) {
        if !self.ledger().is_file() {
            return;
        }
        self.run(&["ledger", "verify"]).assert_code(0);
        let sound = block_on(async {
            let url = format!("sqlite://{}", self.ledger().display());
            let mut connection = SqliteConnection::connect(&url).await.expect("it opens");
            let row =
                sqlx::query("PRAGMA integrity_check").fetch_one(&mut connection).await.expect("it answers");
            connection.close().await.expect("it closes");
            row.get::<String, _>(0)
        });
        assert_eq!(sound, "ok");
    }
}
