//! The API against its own description: Schemathesis sends what the document allows and what it does not, and holds each
//! response against it.
//!
//! Needs what `scripts/services install schemathesis` installs, in the folder that `QUORATE_TEST_SCHEMATHESIS` names;
//! without it the test prints SKIPPED.

use std::path::Path;
use std::process::Command;

use super::support::TestDir;
use super::support::council::all_ship;
use super::support::serve::Served;

const SCHEMATHESIS: &str = "QUORATE_TEST_SCHEMATHESIS";

/// Answers that an OpenAPI document cannot predict: a run or a job that does not exist, a key that was used for another request, a manifest that
/// is refused.
const SETTINGS: &str = "
[checks.positive_data_acceptance]
expected-statuses = [\"2xx\", 401, 403, 404, 409, 422, 429]
";

#[test]
fn the_api_is_as_it_describes_itself() {
    let Ok(folder) = std::env::var(SCHEMATHESIS) else {
        eprintln!("SKIPPED: Schemathesis (scripts/services install schemathesis prints {SCHEMATHESIS})");
        return;
    };
    let place = TestDir::scripted(&all_ship());
    place.write(".gitconfig", "[user]\nname = Ada\nemail = ada@example.org\n");
    place.run(&["review", "draft.md"]).assert_code(0);
    place.write("schemathesis.toml", SETTINGS);
    let served = Served::start(&place, &[]);
    let operations = served.get("/api/v1/openapi.json").json();
    let operations: usize =
        operations["paths"].as_object().unwrap().values().map(|path| path.as_object().unwrap().len()).sum();
    let mut command = Command::new(Path::new(&folder).join("bin/python"));
    command
        .args(["-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"])
        .arg(format!("http://{}/api/v1/openapi.json", served.authority))
        .arg(format!("--header=Authorization: {}", served.bearer()))
        .args(["--phases=coverage,fuzzing", "--max-examples=10", "--generation-deterministic", "--no-color"])
        .args(["--request-timeout=20", "--report=json", "--report-json-path=report.json"])
        .current_dir(place.root())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", place.root());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    // The description itself is not one of those that it tests.
    let tested = format!("Tested: {}", operations - 1);
    assert!(said.contains(&tested), "all {operations} operations are tested: {said}");
}
