//! The server and the official client of the Python SDK. Needs what `scripts/services install mcp-python` installs, in the
//! folder that `QUORATE_TEST_MCP_PYTHON` names; without it the test prints SKIPPED.
#![cfg(feature = "mcp")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{QUORATE, REVISED, TestDir};

#[test]
fn tools_resources_and_prompts_are_what_the_client_takes() {
    let Some(folder) = std::env::var_os("QUORATE_TEST_MCP_PYTHON") else {
        eprintln!(
            "SKIPPED: the Python SDK (scripts/services install mcp-python prints QUORATE_TEST_MCP_PYTHON)"
        );
        return;
    };
    let place = TestDir::with("draft.md", REVISED);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/support/mcp_client.py");
    let own = place.command(&[]);
    let mut command = Command::new(Path::new(&folder).join("bin/python"));
    command.arg(script).args([QUORATE, "mcp"]).current_dir(place.root());
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().expect("Python runs");
    assert!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    let shown = place.run(&["show", "latest", "--format", "json"]).assert_code(0).json();
    assert_eq!(said["reviewed"]["structuredContent"]["result"], shown);
    assert_eq!(said["resources"][0], format!("quorate://runs/{}", shown["run"].as_str().unwrap()));
    assert!(said["brief"].as_str().unwrap().starts_with("REVISE draft.md"), "{}", said["brief"]);
    assert_eq!(said["prompts"].as_array().map(Vec::len), Some(3));
    let enclosed = said["explained"]["messages"][1]["content"]["resource"]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(enclosed).unwrap(), shown);
}
