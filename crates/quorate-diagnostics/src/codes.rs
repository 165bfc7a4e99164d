//! Diagnostic codes: one table maps each code to its constant, severity and page.
//!
//! To add a code, add a line to the table below and a page under `codes/`. The page's first heading is the code; its
//! first paragraph is one line that defines it. Then come files and commands that trigger it with their output, then the
//! reason and the remedy (`What to do: `). `crates/quorate-cli/tests/it/explain.rs` runs the examples.

use std::fmt;

/// The code of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefusalCode(&'static str);

/// The code of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WarningCode(&'static str);

/// Whether a diagnostic stops the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// It does.
    Refusal,
    /// It does not.
    Warning,
}

/// The documentation of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// The whole code, for example `quorate:syntax`.
    pub code: &'static str,
    /// Whether a diagnostic with the code stops the command.
    pub severity: Severity,
    /// The whole page.
    pub markdown: &'static str,
}

macro_rules! codes {
    (@code refusal $code:literal) => { RefusalCode($code) };
    (@code warning $code:literal) => { WarningCode($code) };
    (@type refusal) => { RefusalCode };
    (@type warning) => { WarningCode };
    (@severity refusal) => { Severity::Refusal };
    (@severity warning) => { Severity::Warning };
    ($($severity:ident $name:ident = $code:literal, $page:literal;)*) => {
        $(
            #[doc = concat!("`", $code, "`; see `quorate explain` or `codes/", $page, "`.")]
            pub const $name: codes!(@type $severity) = codes!(@code $severity $code);
        )*

        const PAGES: &[Page] = &[$(Page {
            code: $code,
            severity: codes!(@severity $severity),
            markdown: include_str!(concat!("../codes/", $page)),
        }),*];
    };
}

codes! {
    refusal ASSEMBLY_WORKSPACE_INVALID = "assembly_workspace_invalid", "aip-24/assembly_workspace_invalid.md";
    refusal ASSEMBLY_APPLIESTO_UNRESOLVABLE = "assembly_appliesto_unresolvable", "aip-24/assembly_appliesto_unresolvable.md";
    refusal ASSEMBLY_AUDIT_DISABLE = "assembly_audit_disable", "aip-24/assembly_audit_disable.md";
    refusal ASSEMBLY_SIGNING_DOWNGRADE = "assembly_signing_downgrade", "aip-24/assembly_signing_downgrade.md";
    refusal ASSEMBLY_MODE_CHANGE = "assembly_mode_change", "aip-24/assembly_mode_change.md";
    refusal ASSEMBLY_LOCKED_TRAIT_REMOVED = "assembly_locked_trait_removed", "aip-24/assembly_locked_trait_removed.md";
    refusal ASSEMBLY_MEMBER_PERSONA_UNRESOLVABLE = "assembly_member_persona_unresolvable", "aip-24/assembly_member_persona_unresolvable.md";
    refusal ASSEMBLY_MEMBER_ID_COLLISION = "assembly_member_id_collision", "aip-24/assembly_member_id_collision.md";
    refusal ASSEMBLY_SYNTHESIS_RULE_INVALID = "assembly_synthesis_rule_invalid", "aip-24/assembly_synthesis_rule_invalid.md";
    refusal ASSEMBLY_SYNTHESIS_UNKNOWN_MEMBER = "assembly_synthesis_unknown_member", "aip-24/assembly_synthesis_unknown_member.md";
    refusal ASSEMBLY_HIERARCHY_CYCLE = "assembly_hierarchy_cycle", "aip-24/assembly_hierarchy_cycle.md";
    refusal ASSEMBLY_HIERARCHY_INVALID_PARENT = "assembly_hierarchy_invalid_parent", "aip-24/assembly_hierarchy_invalid_parent.md";
    refusal ASSEMBLY_XREF_UNRESOLVABLE = "assembly_xref_unresolvable", "aip-24/assembly_xref_unresolvable.md";
    refusal ASSEMBLY_SIGNING_UNSUPPORTED = "assembly_signing_unsupported", "aip-24/assembly_signing_unsupported.md";
    refusal ASSEMBLY_OVERLAY_LOCK_VIOLATION = "assembly_overlay_lock_violation", "aip-24/assembly_overlay_lock_violation.md";
    warning ASSEMBLY_EXTENDS_CYCLE = "assembly_extends_cycle", "aip-24/assembly_extends_cycle.md";
    warning ASSEMBLY_EXTENDS_MISSING = "assembly_extends_missing", "aip-24/assembly_extends_missing.md";
    warning ASSEMBLY_EXTENDS_DEPTH_EXCEEDED = "assembly_extends_depth_exceeded", "aip-24/assembly_extends_depth_exceeded.md";
    warning ASSEMBLY_LOCKED_TRAIT_MATCH_MODE_UNSUPPORTED = "assembly_locked_trait_match_mode_unsupported", "aip-24/assembly_locked_trait_match_mode_unsupported.md";
    warning ASSEMBLY_SYNTHESIS_TERMINAL_CHAIN = "assembly_synthesis_terminal_chain", "aip-24/assembly_synthesis_terminal_chain.md";
    refusal PERSONA_INVALID = "persona_invalid", "aip-25/persona_invalid.md";
    warning PERSONA_EXTENDS_CYCLE = "persona_extends_cycle", "aip-25/persona_extends_cycle.md";
    warning PERSONA_EXTENDS_MISSING = "persona_extends_missing", "aip-25/persona_extends_missing.md";
    warning PERSONA_EXTENDS_DEPTH_EXCEEDED = "persona_extends_depth_exceeded", "aip-25/persona_extends_depth_exceeded.md";
    warning PERSONA_IDENTITY_UNRESOLVABLE = "persona_identity_unresolvable", "aip-25/persona_identity_unresolvable.md";
    warning PERSONA_APPLIESTO_UNRESOLVABLE = "persona_appliesto_unresolvable", "aip-25/persona_appliesto_unresolvable.md";
    warning PERSONA_RELATIONSHIP_UNRESOLVABLE = "persona_relationship_unresolvable", "aip-25/persona_relationship_unresolvable.md";
    warning PERSONA_REDIRECT_UNRESOLVABLE = "persona_redirect_unresolvable", "aip-25/persona_redirect_unresolvable.md";
    refusal PERSONA_XREF_CROSS_TENANT = "persona_xref_cross_tenant", "aip-25/persona_xref_cross_tenant.md";
    refusal PLAYBOOK_INVALID = "playbook_invalid", "aip-12/playbook_invalid.md";
    warning ENTRY_DRIFT = "entry_drift", "aip-12/entry_drift.md";
    refusal SLUG_DUPLICATE = "slug_duplicate", "aip-12/slug_duplicate.md";
    refusal TARGET_UNRESOLVED = "target_unresolved", "aip-12/target_unresolved.md";
    refusal LOCK_VIOLATED = "lock_violated", "aip-12/lock_violated.md";
    refusal BLOCK_NOT_REPLACEABLE = "block_not_replaceable", "aip-12/block_not_replaceable.md";
    refusal HISTORY_MUTATION = "history_mutation", "aip-12/history_mutation.md";
    refusal DELTA_INVALID = "delta_invalid", "aip-12/delta_invalid.md";
    refusal PROMOTION_DENIED = "promotion_denied", "aip-12/promotion_denied.md";
    refusal RUNTIME_INVALID = "quorate:runtime_invalid", "quorate/runtime_invalid.md";
    refusal OPERATOR_INVALID = "quorate:operator_invalid", "quorate/operator_invalid.md";
    refusal DOCTYPE_UNKNOWN = "quorate:doctype_unknown", "quorate/doctype_unknown.md";
    warning FILENAME = "quorate:filename", "quorate/filename.md";
    refusal TIMESTAMP = "quorate:timestamp", "quorate/timestamp.md";
    refusal KEYRING_INVALID = "quorate:keyring_invalid", "quorate/keyring_invalid.md";
    refusal GOVERNANCE_INVALID = "quorate:governance_invalid", "quorate/governance_invalid.md";
    refusal GOVERNANCE_WIDENED = "quorate:governance_widened", "quorate/governance_widened.md";
    refusal GOVERNANCE_EXCEEDED = "quorate:governance_exceeded", "quorate/governance_exceeded.md";
    refusal GOVERNANCE_UNCHECKED = "quorate:governance_unchecked", "quorate/governance_unchecked.md";
    refusal KEY_REVOKED = "quorate:key_revoked", "quorate/key_revoked.md";
    refusal SIGNING_KEY_MISSING = "quorate:signing_key_missing", "quorate/signing_key_missing.md";
    refusal KEY_EXPOSED = "quorate:key_exposed", "quorate/key_exposed.md";
    refusal KEY_UNUSABLE = "quorate:key_unusable", "quorate/key_unusable.md";
    refusal KEY_UNKNOWN = "quorate:key_unknown", "quorate/key_unknown.md";
    refusal CHAIN_BROKEN = "quorate:chain_broken", "quorate/chain_broken.md";
    refusal EXTENDS_ESCAPE = "quorate:extends_escape", "quorate/extends_escape.md";
    warning LOCKED_TRAITS_NOT_RESTATED = "quorate:locked_traits_not_restated", "quorate/locked_traits_not_restated.md";
    refusal MATCH_MODE_LOOSENED = "quorate:match_mode_loosened", "quorate/match_mode_loosened.md";
    refusal HIERARCHY_MULTIPLE_ROOTS = "quorate:hierarchy_multiple_roots", "quorate/hierarchy_multiple_roots.md";
    refusal ASSEMBLY_EMPTY = "quorate:assembly_empty", "quorate/assembly_empty.md";
    refusal RISK_LEVELS_INVALID = "quorate:risk_levels_invalid", "quorate/risk_levels_invalid.md";
    warning MEMBER_WITHOUT_PHASE = "quorate:member_without_phase", "quorate/member_without_phase.md";
    refusal GATHER_UNKNOWN = "quorate:gather_unknown", "quorate/gather_unknown.md";
    refusal GATHER_PARAMS_INVALID = "quorate:gather_params_invalid", "quorate/gather_params_invalid.md";
    refusal NUMBER_UNUSABLE = "quorate:number_unusable", "quorate/number_unusable.md";
    refusal PARTICIPANT_RESERVED = "quorate:participant_reserved", "quorate/participant_reserved.md";
    refusal AUTHOR_IS_PARTICIPANT = "quorate:author_is_participant", "quorate/author_is_participant.md";
    refusal PARTICIPANT_DUPLICATE = "quorate:participant_duplicate", "quorate/participant_duplicate.md";
    refusal ROLE_UNRESOLVABLE = "quorate:role_unresolvable", "quorate/role_unresolvable.md";
    refusal EFFECTOR_UNKNOWN_PARTICIPANT = "quorate:effector_unknown_participant", "quorate/effector_unknown_participant.md";
    refusal OPERATOR_PERSONA_UNRESOLVABLE = "quorate:operator_persona_unresolvable", "quorate/operator_persona_unresolvable.md";
    refusal OPERATOR_UNRESOLVABLE = "quorate:operator_unresolvable", "quorate/operator_unresolvable.md";
    refusal ADAPTER_INVALID = "quorate:adapter_invalid", "quorate/adapter_invalid.md";
    refusal RUNTIME_BUSY = "quorate:runtime_busy", "quorate/runtime_busy.md";
    refusal CONVERSATION_ALTERED = "quorate:conversation_altered", "quorate/conversation_altered.md";
    refusal CONVERSATION_LOST = "quorate:conversation_lost", "quorate/conversation_lost.md";
    refusal CONVERSATION_NOT_SHARED = "quorate:conversation_not_shared", "quorate/conversation_not_shared.md";
    refusal TURN_REFUSED = "quorate:turn_refused", "quorate/turn_refused.md";
    refusal SUBSTRATE_UNAVAILABLE = "quorate:substrate_unavailable", "quorate/substrate_unavailable.md";
    refusal PARTICIPANT_UNKNOWN = "quorate:participant_unknown", "quorate/participant_unknown.md";
    refusal STATE_UNREADABLE = "quorate:state_unreadable", "quorate/state_unreadable.md";
    refusal EVENTS_UNWRITABLE = "quorate:events_unwritable", "quorate/events_unwritable.md";
    refusal FILE_UNREADABLE = "quorate:file_unreadable", "quorate/file_unreadable.md";
    refusal SYNTAX = "quorate:syntax", "quorate/syntax.md";
    refusal COUNCIL_INVALID = "quorate:council_invalid", "quorate/council_invalid.md";
    refusal POLICY_NOT_MONOTONE = "quorate:policy_not_monotone", "quorate/policy_not_monotone.md";
    refusal HOST_INVALID = "quorate:host_invalid", "quorate/host_invalid.md";
    refusal DURATION = "quorate:duration", "quorate/duration.md";
    refusal KIND_UNKNOWN = "quorate:kind_unknown", "quorate/kind_unknown.md";
    refusal WORKSPACE_UNTRUSTED = "quorate:workspace_untrusted", "quorate/workspace_untrusted.md";
    refusal OWNERSHIP_DUBIOUS = "quorate:ownership_dubious", "quorate/ownership_dubious.md";
    refusal TRUST_UNREADABLE = "quorate:trust_unreadable", "quorate/trust_unreadable.md";
    refusal COMMAND_MISSING = "quorate:command_missing", "quorate/command_missing.md";
    refusal MODEL_KEY_MISSING = "quorate:model_key_missing", "quorate/model_key_missing.md";
    refusal COST_UNKNOWN = "quorate:cost_unknown", "quorate/cost_unknown.md";
    refusal CASSETTE_INVALID = "quorate:cassette_invalid", "quorate/cassette_invalid.md";
    refusal EXECUTOR_INVALID = "quorate:executor_invalid", "quorate/executor_invalid.md";
    refusal EMBEDDER_INVALID = "quorate:embedder_invalid", "quorate/embedder_invalid.md";
    refusal LOCKS_UNCOMPARED = "quorate:locks_uncompared", "quorate/locks_uncompared.md";
    refusal EXAMPLES_INVALID = "quorate:examples_invalid", "quorate/examples_invalid.md";
    refusal RUNTIME_UNSUPPORTED = "quorate:runtime_unsupported", "quorate/runtime_unsupported.md";
    refusal PROMPT_MISSING = "quorate:prompt_missing", "quorate/prompt_missing.md";
    refusal PROMPT_UNREADABLE = "quorate:prompt_unreadable", "quorate/prompt_unreadable.md";
    refusal CONTEXT_MISSING = "quorate:context_missing", "quorate/context_missing.md";
    refusal CONTEXT_UNREADABLE = "quorate:context_unreadable", "quorate/context_unreadable.md";
    refusal PATTERN_INVALID = "quorate:pattern_invalid", "quorate/pattern_invalid.md";
    refusal CONFIG_MISSING = "quorate:config_missing", "quorate/config_missing.md";
    refusal CONFIG_UNREADABLE = "quorate:config_unreadable", "quorate/config_unreadable.md";
    refusal ARTIFACT_MISSING = "quorate:artifact_missing", "quorate/artifact_missing.md";
    refusal ARTIFACT_UNREADABLE = "quorate:artifact_unreadable", "quorate/artifact_unreadable.md";
    refusal ARTIFACT_BINARY = "quorate:artifact_binary", "quorate/artifact_binary.md";
    refusal ARTIFACT_TOO_LARGE = "quorate:artifact_too_large", "quorate/artifact_too_large.md";
    refusal CONVERSATION_INVALID = "quorate:conversation_invalid", "quorate/conversation_invalid.md";
    refusal PROPOSAL_UNREADABLE = "quorate:proposal_unreadable", "quorate/proposal_unreadable.md";
    refusal OVERLAY_UNKNOWN = "quorate:overlay_unknown", "quorate/overlay_unknown.md";
    refusal RUN_UNKNOWN = "quorate:run_unknown", "quorate/run_unknown.md";
    refusal RUN_AMBIGUOUS = "quorate:run_ambiguous", "quorate/run_ambiguous.md";
    refusal RUN_OPEN = "quorate:run_open", "quorate/run_open.md";
    refusal RUN_DECIDED = "quorate:run_decided", "quorate/run_decided.md";
    refusal RUN_ALTERED = "quorate:run_altered", "quorate/run_altered.md";
    refusal RUN_MOVED = "quorate:run_moved", "quorate/run_moved.md";
    refusal RUN_IMPORTED = "quorate:run_imported", "quorate/run_imported.md";
    refusal RUN_NOT_HELD = "quorate:run_not_held", "quorate/run_not_held.md";
    refusal RUNS_INCOMPARABLE = "quorate:runs_incomparable", "quorate/runs_incomparable.md";
    refusal FINGERPRINT_CHANGED = "quorate:fingerprint_changed", "quorate/fingerprint_changed.md";
    refusal REPLAY_DIFFERS = "quorate:replay_differs", "quorate/replay_differs.md";
    refusal BUG = "quorate:bug", "quorate/bug.md";
    refusal BODY_EVICTED = "quorate:body_evicted", "quorate/body_evicted.md";
    refusal RECORD_UNSEALED = "quorate:record_unsealed", "quorate/record_unsealed.md";
    refusal CHECKPOINT_UNSIGNED = "quorate:checkpoint_unsigned", "quorate/checkpoint_unsigned.md";
    refusal CHECKPOINT_UNKNOWN = "quorate:checkpoint_unknown", "quorate/checkpoint_unknown.md";
    refusal PROOF_INVALID = "quorate:proof_invalid", "quorate/proof_invalid.md";
    refusal REPORT_DIFFERS = "quorate:report_differs", "quorate/report_differs.md";
    refusal PROOF_UNREADABLE = "quorate:proof_unreadable", "quorate/proof_unreadable.md";
    refusal EXPORT_INVALID = "quorate:export_invalid", "quorate/export_invalid.md";
    refusal IMPORT_CONFLICT = "quorate:import_conflict", "quorate/import_conflict.md";
    refusal KEY_UNVOUCHED = "quorate:key_unvouched", "quorate/key_unvouched.md";
    refusal ERASURE_UNFINISHED = "quorate:erasure_unfinished", "quorate/erasure_unfinished.md";
    refusal LEDGER_DIVERGES = "quorate:ledger_diverges", "quorate/ledger_diverges.md";
    refusal WITNESS_UNREADABLE = "quorate:witness_unreadable", "quorate/witness_unreadable.md";
    refusal LEDGER_UNSIGNED = "quorate:ledger_unsigned", "quorate/ledger_unsigned.md";
    refusal LEDGER_CORRUPT = "quorate:ledger_corrupt", "quorate/ledger_corrupt.md";
    refusal LEDGER_UNAVAILABLE = "quorate:ledger_unavailable", "quorate/ledger_unavailable.md";
    refusal LEDGER_ADDRESS = "quorate:ledger_address", "quorate/ledger_address.md";
    refusal LEDGER_IN_DOUBT = "quorate:ledger_in_doubt", "quorate/ledger_in_doubt.md";
    refusal LEDGER_CLOSED = "quorate:ledger_closed", "quorate/ledger_closed.md";
    refusal QUEUE_UNAVAILABLE = "quorate:queue_unavailable", "quorate/queue_unavailable.md";
    refusal QUEUE_INVALID = "quorate:queue_invalid", "quorate/queue_invalid.md";
    refusal TASK_UNSIGNED = "quorate:task_unsigned", "quorate/task_unsigned.md";
    refusal INPUT_NOT_ARTIFACT = "quorate:input_not_artifact", "quorate/input_not_artifact.md";
    refusal LEDGER_UNKNOWN = "quorate:ledger_unknown", "quorate/ledger_unknown.md";
    refusal GITHUB_UNUSABLE = "quorate:github_unusable", "quorate/github_unusable.md";
    refusal GITHUB_FAILED = "quorate:github_failed", "quorate/github_failed.md";
    refusal NOT_ATTESTABLE = "quorate:not_attestable", "quorate/not_attestable.md";
    refusal QUEUE_FULL = "quorate:queue_full", "quorate/queue_full.md";
    refusal QUEUE_BUSY = "quorate:queue_busy", "quorate/queue_busy.md";
    refusal NATS_UNUSABLE = "quorate:nats_unusable", "quorate/nats_unusable.md";
    refusal RUN_QUEUED = "quorate:run_queued", "quorate/run_queued.md";
    refusal LOG_UNWRITABLE = "quorate:log_unwritable", "quorate/log_unwritable.md";
    refusal MODULARITY = "quorate:modularity", "quorate/modularity.md";
    refusal PROFILE_UNKNOWN = "quorate:profile_unknown", "quorate/profile_unknown.md";
    refusal PROFILE_INVALID = "quorate:profile_invalid", "quorate/profile_invalid.md";
    refusal PROFILE_TARGET = "quorate:profile_target", "quorate/profile_target.md";
    refusal PROFILE_DRIFT = "quorate:profile_drift", "quorate/profile_drift.md";
    refusal SETUP_CORRUPT = "quorate:setup_corrupt", "quorate/setup_corrupt.md";
    refusal FEATURE_MISSING = "quorate:feature_missing", "quorate/feature_missing.md";
    refusal MCP_EXPOSED = "quorate:mcp_exposed", "quorate/mcp_exposed.md";
    refusal MCP_UNUSABLE = "quorate:mcp_unusable", "quorate/mcp_unusable.md";
    refusal REQUEST_REFUSED = "quorate:request_refused", "quorate/request_refused.md";
    refusal REQUEST_INCOMPLETE = "quorate:request_incomplete", "quorate/request_incomplete.md";
    refusal ADDRESS_UNUSABLE = "quorate:address_unusable", "quorate/address_unusable.md";
    refusal PATH_OUTSIDE = "quorate:path_outside", "quorate/path_outside.md";
    refusal PATH_RESERVED = "quorate:path_reserved", "quorate/path_reserved.md";
    refusal CONVERSATION_UNKNOWN = "quorate:conversation_unknown", "quorate/conversation_unknown.md";
    refusal OPERATOR_FAILED = "quorate:operator_failed", "quorate/operator_failed.md";
    refusal KEY_TAKEN = "quorate:key_taken", "quorate/key_taken.md";
    refusal JOB_UNKNOWN = "quorate:job_unknown", "quorate/job_unknown.md";
    refusal JOB_ENDED = "quorate:job_ended", "quorate/job_ended.md";
    refusal JOBS_BUSY = "quorate:jobs_busy", "quorate/jobs_busy.md";
    refusal FILE_UNWRITABLE = "quorate:file_unwritable", "quorate/file_unwritable.md";
    refusal PLAYBOOK_UNKNOWN = "quorate:playbook_unknown", "quorate/playbook_unknown.md";
    refusal PLAYBOOK_UNFINISHED = "quorate:playbook_unfinished", "quorate/playbook_unfinished.md";
    refusal FILE_EXISTS = "quorate:file_exists", "quorate/file_exists.md";
    refusal USAGE = "quorate:usage", "quorate/usage.md";
    warning PLAYBOOK_GONE = "quorate:playbook_gone", "quorate/playbook_gone.md";
    warning PLAYBOOK_INDEX_STALE = "quorate:playbook_index_stale", "quorate/playbook_index_stale.md";
    warning WEAVE_UNRECORDED = "quorate:weave_unrecorded", "quorate/weave_unrecorded.md";
    warning SUPERSEDES_WITHOUT_EFFECT = "quorate:supersedes_without_effect", "quorate/supersedes_without_effect.md";
    warning PLAYBOOK_LOG_TRUNCATED = "quorate:playbook_log_truncated", "quorate/playbook_log_truncated.md";
    warning PLAYBOOKS_CONTRADICT = "quorate:playbooks_contradict", "quorate/playbooks_contradict.md";
    warning NEVER_GATED = "quorate:never_gated", "quorate/never_gated.md";
    warning JUDGE_OFF = "quorate:judge_off", "quorate/judge_off.md";
    warning PLAYBOOKS_MANY = "quorate:playbooks_many", "quorate/playbooks_many.md";
    warning MEMBERS_MISSING = "quorate:members_missing", "quorate/members_missing.md";
    warning MEMBER_FIELD_DROPPED = "quorate:member_field_dropped", "quorate/member_field_dropped.md";
    warning TTL_OUT_OF_RANGE = "quorate:ttl_out_of_range", "quorate/ttl_out_of_range.md";
    warning LOCKED_TRAIT_DOUBTFUL = "quorate:locked_trait_doubtful", "quorate/locked_trait_doubtful.md";
    warning TERMINAL_REPLACED = "quorate:terminal_replaced", "quorate/terminal_replaced.md";
    warning RULE_WITHOUT_EFFECT = "quorate:rule_without_effect", "quorate/rule_without_effect.md";
    warning FIELD_WITHOUT_EFFECT = "quorate:field_without_effect", "quorate/field_without_effect.md";
    warning WEIGHT_UNCOUNTED = "quorate:weight_uncounted", "quorate/weight_uncounted.md";
    warning CONVERSATION_DOUBTFUL = "quorate:conversation_doubtful", "quorate/conversation_doubtful.md";
    warning DISPATCH_AMBIGUOUS = "quorate:dispatch_ambiguous", "quorate/dispatch_ambiguous.md";
    warning ROLE_NOT_A_FILE = "quorate:role_not_a_file", "quorate/role_not_a_file.md";
    warning PATTERN_UNMATCHED = "quorate:pattern_unmatched", "quorate/pattern_unmatched.md";
    warning OUTSIDE_WORKSPACE = "quorate:outside_workspace", "quorate/outside_workspace.md";
    warning EFFECTOR_UNKNOWN_SERVER = "quorate:effector_unknown_server", "quorate/effector_unknown_server.md";
    warning ORCHESTRATOR_COEXISTS = "quorate:orchestrator_coexists", "quorate/orchestrator_coexists.md";
    warning LOG_CORRUPT = "quorate:log_corrupt", "quorate/log_corrupt.md";
    warning LOG_TORN = "quorate:log_torn", "quorate/log_torn.md";
    warning LOG_ELSEWHERE = "quorate:log_elsewhere", "quorate/log_elsewhere.md";
    warning LOG_BEHIND = "quorate:log_behind", "quorate/log_behind.md";
    warning LEDGER_SET_ASIDE = "quorate:ledger_set_aside", "quorate/ledger_set_aside.md";
    warning LEDGER_READ_ONLY = "quorate:ledger_read_only", "quorate/ledger_read_only.md";
    warning LEDGER_KEY_MISSING = "quorate:ledger_key_missing", "quorate/ledger_key_missing.md";
    warning CHECKPOINT_MISSING = "quorate:checkpoint_missing", "quorate/checkpoint_missing.md";
    warning CHECKPOINT_UNKEPT = "quorate:checkpoint_unkept", "quorate/checkpoint_unkept.md";
    warning LEDGER_FIRST_USE = "quorate:ledger_first_use", "quorate/ledger_first_use.md";
    warning WITNESS_BEHIND = "quorate:witness_behind", "quorate/witness_behind.md";
    warning SIGNER_UNKNOWN = "quorate:signer_unknown", "quorate/signer_unknown.md";
    warning TIER_UNKNOWN = "quorate:tier_unknown", "quorate/tier_unknown.md";
    warning WATCH_UNREADABLE = "quorate:watch_unreadable", "quorate/watch_unreadable.md";
}

/// [`ASSEMBLY_XREF_UNRESOLVABLE`] as a warning: the same command is about to create the ref's target.
pub const XREF_PLANNED: WarningCode = WarningCode(ASSEMBLY_XREF_UNRESOLVABLE.0);

/// [`KEY_REVOKED`] as a warning: the user revokes a key with effect from a past time.
pub const REVOKED_BEFORE: WarningCode = WarningCode(KEY_REVOKED.0);

/// [`ERASURE_UNFINISHED`] as a warning: the run has an outcome, but its answers, due for erasure, are not yet erased.
pub const ERASURE_BEHIND: WarningCode = WarningCode(ERASURE_UNFINISHED.0);

impl RefusalCode {
    /// The whole code, for example `quorate:syntax`.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The code as a warning: this command goes on, and another one would refuse.
    pub const fn as_warning(self) -> WarningCode {
        WarningCode(self.0)
    }
}

impl WarningCode {
    /// The whole code, for example `quorate:watch_unreadable`.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

impl fmt::Display for WarningCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

impl Severity {
    /// `refusal` or `warning`, as in every output format.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Refusal => "refusal",
            Severity::Warning => "warning",
        }
    }
}

impl Page {
    /// The page's first paragraph: a one-line definition of the code.
    pub fn summary(&self) -> &'static str {
        self.markdown.lines().skip(1).find(|line| !line.trim().is_empty()).unwrap_or_default()
    }
}

/// All pages, in table order.
pub fn all() -> &'static [Page] {
    PAGES
}

/// The page of a code. The prefix `quorate:` is optional.
pub fn explain(code: &str) -> Option<Page> {
    let bare = code.trim();
    PAGES.iter().copied().find(|page| page.code == bare || page.code.strip_prefix("quorate:") == Some(bare))
}

/// The code most similar to a misspelt one, if any is close enough.
pub fn nearest(code: &str) -> Option<&'static str> {
    let bare = code.trim().trim_start_matches("quorate:");
    PAGES
        .iter()
        .map(|page| {
            let candidate = page.code.trim_start_matches("quorate:");
            (strsim::jaro_winkler(bare, candidate), page.code)
        })
        .filter(|(similarity, code)| *similarity > 0.8 && is_close(bare, code.trim_start_matches("quorate:")))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, code)| code)
}

/// Whether at most a third of the letters differ. Jaro-Winkler alone matches a short word to any longer one that it begins.
fn is_close(word: &str, other: &str) -> bool {
    strsim::damerau_levenshtein(word, other) * 3 <= other.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_says_what_when_and_what_to_do() {
        for page in all() {
            let code = page.code;
            assert_eq!(page.markdown.lines().next(), Some(format!("# {code}").as_str()), "{code}");
            assert!(page.summary().ends_with('.') && page.summary().len() > 20, "{code}: {}", page.summary());
            assert_eq!(page.markdown.matches("```").count() % 2, 0, "{code}: unclosed fence");
            assert!(page.markdown.contains("\n```"), "{code}: no example");
            assert!(page.markdown.contains("\nWhat to do: "), "{code}: no remedy");
        }
    }

    #[test]
    fn codes_are_unique_and_found_with_and_without_prefix() {
        for (index, page) in all().iter().enumerate() {
            assert!(all()[..index].iter().all(|other| other.code != page.code), "{}", page.code);
            assert_eq!(explain(page.code), Some(*page));
            assert_eq!(explain(page.code.trim_start_matches("quorate:")), Some(*page));
        }
        assert_eq!(explain("quorate:nonsense"), None);
    }

    #[test]
    fn misspelt_codes_are_recognised() {
        assert_eq!(nearest("quorate:council_invlid"), Some("quorate:council_invalid"));
        assert_eq!(nearest("artefact_missing"), Some("quorate:artifact_missing"));
        assert_eq!(nearest("run_opne"), Some("quorate:run_open"));
        for word in ["zzz", "nope", "run", "r", ""] {
            assert_eq!(nearest(word), None, "{word}");
        }
    }
}
