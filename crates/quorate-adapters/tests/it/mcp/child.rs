//! A server that is a program of ours, spoken to over its pipes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::mcp::host::{TestHost, object};

/// A key-value server with one entry, in a shell: it prints nonsense now and then, leaves a grandchild, and says which
/// variables it sees.
const SERVER: &str = r#"#!/bin/sh
sleep 1000 & echo "$! $$" >> "$1"
echo "this is not JSON-RPC"
value=null
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case $line in
        *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
        *'"tools/list"'*) result='{"tools":[{"name":"kv_get","inputSchema":{"type":"object","properties":{"key":{}}}},{"name":"kv_set","inputSchema":{"type":"object","properties":{"key":{},"value":{}}}},{"name":"env","inputSchema":{"type":"object"}}]}' ;;
        *die*) echo "the disk is full" >&2; exit 3 ;;
        *'"kv_set"'*) value="{\"seen\":\"$SEEN$UNSEEN\"}"; result='{"content":[],"structuredContent":{}}' ;;
        *'"kv_get"'*) result="{\"content\":[],\"structuredContent\":{\"value\":$value}}" ;;
        *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

fn host(dir: &Path, script: &str) -> TestHost {
    let path = dir.join("server.sh");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    TestHost::from_table(
        json!({"command": path, "args": [dir.join("pids")], "env": ["SEEN"], "timeout": "15s"}),
    )
}

fn pids(dir: &Path) -> Vec<String> {
    let written = std::fs::read_to_string(dir.join("pids")).unwrap_or_default();
    written.split_whitespace().map(str::to_owned).collect()
}

fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

#[tokio::test]
async fn a_program_is_spoken_to_restarted_and_ended_with_all_that_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path(), SERVER);
    let state = host.state(json!({}));
    assert!(state.read("a").await.unwrap().is_empty());
    state.write("a", &object(json!({}))).await.unwrap();
    // It sees none of our variables but those that are listed, and those are not set.
    assert_eq!(state.read("a").await.unwrap(), object(json!({"seen": ""})));
    assert_eq!(pids(dir.path()).len(), 2, "one start, with a grandchild");

    // It dies in the middle of a call, and is started again for the next one.
    assert!(state.read("die").await.is_err());
    assert!(state.read("a").await.unwrap().is_empty());
    let started = pids(dir.path());
    assert!(started.len() > 2);

    drop(state);
    quorate_adapters::process::wait_for_members(Duration::from_secs(10));
    if Path::new("/proc/self/stat").exists() {
        let left: Vec<&String> = started.iter().filter(|pid| runs(pid)).collect();
        assert!(left.is_empty(), "still running: {left:?}");
    }
}

#[tokio::test]
async fn a_program_that_ends_at_once_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path(), "#!/bin/sh\necho 'no licence found' >&2\nexit 1\n");
    let error = host.state(json!({})).read("a").await.unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(why.contains("it ended: no licence found"), "{why}");
}

#[tokio::test]
async fn a_program_that_says_nothing_is_given_up_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("silent.sh");
    std::fs::write(&path, "#!/bin/sh\nwhile :; do sleep 1; done\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let state = TestHost::from_table(json!({"command": path, "timeout": "500ms"})).state(json!({}));
    let error = tokio::time::timeout(Duration::from_secs(10), state.read("a")).await.unwrap().unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(why.contains("no session within"), "{why}");
}
