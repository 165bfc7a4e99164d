//! Valid and invalid tables of servers.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Endpoint, Server};

fn read(table: Value) -> Result<Server, (Option<String>, String, Option<String>)> {
    Server::parse("guilde", table.as_object().unwrap(), Path::new("/"))
        .map_err(|error| (error.key, error.message, error.help))
}

fn refused_key(table: Value) -> String {
    let (key, message, help) = read(table).unwrap_err();
    assert!(message.starts_with("[mcp.guilde]: "), "{message}");
    assert!(help.is_some(), "{message}");
    key.unwrap()
}

#[test]
fn a_url_and_a_command_are_read() {
    let server =
        read(json!({"url": "https://example.com/mcp?team=7", "token": "GUILDE_TOKEN", "timeout": "5s"}));
    let server = server.unwrap();
    assert_eq!(server.timeout, Duration::from_secs(5));
    assert_eq!(server.stable_name(), "https://example.com/mcp");
    assert!(matches!(server.endpoint, Endpoint::Http { token: Some(name), .. } if name == "GUILDE_TOKEN"));
    let server = read(json!({"command": "guilde", "args": ["serve"], "env": ["KEY"]})).unwrap();
    assert_eq!((server.timeout, server.stable_name().as_str()), (Duration::from_secs(30), "mcp:guilde"));
    assert!(matches!(server.endpoint, Endpoint::Process(_)));
}

#[test]
fn a_bad_table_is_refused_by_key_with_help() {
    assert_eq!(refused_key(json!({})), "mcp.guilde");
    assert_eq!(refused_key(json!({"urll": "x"})), "mcp.guilde.urll");
    assert_eq!(refused_key(json!({"url": "ftp://example.com"})), "mcp.guilde.url");
    assert_eq!(refused_key(json!({"url": "example.com"})), "mcp.guilde.url");
    assert_eq!(refused_key(json!({"url": "https://me:secret@example.com"})), "mcp.guilde.url");
    assert_eq!(refused_key(json!({"url": "https://example.com", "command": "x"})), "mcp.guilde.command");
    assert_eq!(refused_key(json!({"url": "https://example.com", "args": ["x"]})), "mcp.guilde.args");
    assert_eq!(refused_key(json!({"command": "x", "token": "T"})), "mcp.guilde.token");
    assert_eq!(refused_key(json!({"command": "x", "env": ["A=b"]})), "mcp.guilde.env");
    assert_eq!(refused_key(json!({"url": "https://example.com", "timeout": "30"})), "mcp.guilde.timeout");
}

#[test]
fn a_token_that_stands_in_the_table_is_not_repeated() {
    let (key, message, help) =
        read(json!({"url": "https://example.com", "token": "sk-very-secret"})).unwrap_err();
    assert_eq!(key.as_deref(), Some("mcp.guilde.token"));
    assert!(!message.contains("very") && !help.unwrap().contains("very"));
}
