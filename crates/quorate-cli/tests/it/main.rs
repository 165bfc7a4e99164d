//! The tests of this crate from outside, in one binary: a module for what is tested.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start processes, make files, and fail where they cannot go on"
)]

mod altered;
mod answering;
mod assemblies;
mod attest;
mod basis;
mod bindings;
mod budgets;
mod canaries;
mod cassettes;
mod commands;
mod conformance;
mod convene;
mod convene_bad_input;
mod conversation_altered;
mod councils;
mod cross_substrate;
mod decisions;
mod docs;
mod embedder;
mod eval;
mod explain;
mod fail_closed;
mod fallback;
mod formats;
mod github;
mod golden_records;
mod guard;
mod guesses;
mod hook;
mod http_witness_missing;
mod json_guard;
mod judges;
mod keys;
mod kills;
mod learning;
mod ledger;
mod ledger_address;
mod ledger_closed;
mod ledger_export;
mod ledger_faults;
mod ledger_gc;
mod ledger_imported;
mod ledger_keys;
mod ledger_postgres;
mod ledger_rollback;
mod ledger_schema;
mod ledger_sealed;
mod ledger_verify;
mod ledger_witness;
mod ledger_workspaces;
mod limits;
mod locks;
mod logging;
mod manifests;
mod mcp;
mod mcp_arguments;
mod mcp_card;
mod mcp_check;
mod mcp_conversation;
mod mcp_http;
mod mcp_missing;
mod mcp_public;
mod mcp_python;
mod mcp_together;
mod mcp_typescript;
mod meaning;
mod members;
mod mixed_councils;
mod models;
mod own_rule;
mod packages;
mod playbook_bad_input;
mod playbook_commands;
mod playbook_crash;
mod playbook_gates;
mod playbook_ledger;
mod playbook_lifecycle;
mod postgres_missing;
mod postgres_roles;
mod prompts;
mod provision;
mod public_councils;
mod public_runtimes;
mod queue;
mod refusals;
#[cfg(feature = "serve")]
mod report;
#[cfg(feature = "serve")]
mod report_browser;
mod review;
mod runtime;
mod runtime_edges;
mod runtime_limits;
mod runtime_nats;
mod runtime_places;
mod runtime_postgres;
mod runtime_remote;
mod samples;
mod sandbox;
mod schemas;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod serve_audit;
#[cfg(feature = "serve")]
mod serve_browser;
#[cfg(feature = "serve")]
mod serve_faults;
#[cfg(feature = "serve")]
mod serve_openapi;
#[cfg(feature = "serve")]
mod serve_playbooks;
#[cfg(feature = "serve")]
mod serve_requests;
#[cfg(feature = "serve")]
mod serve_runs;
#[cfg(feature = "serve")]
mod serve_talks;
mod several;
mod site;
mod suggestions;
mod support;
mod swarm_kill;
mod sweep;
mod tier_model;
mod traces;
mod trust;
mod weave;
mod workflow_commands;
