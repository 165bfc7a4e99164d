"""What commands print as JSON, as dataclasses.

Made from the schemas of `quorate schema`; CONTRIBUTING.md says how.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ._shown import ShownConvening, ShownReview, ShownRuns, ShownVerification

__all__ = [
    "Adjudicator",
    "Answer",
    "AssemblyConsultation",
    "AssemblyContribution",
    "AssemblyDecision",
    "AssemblyExact",
    "AssemblyFragment",
    "AssemblyMember",
    "AssemblyMessage",
    "AssemblyNode",
    "AssemblyObjection",
    "AssemblyOutcome",
    "AssemblyOutput",
    "AssemblyRisk",
    "AssemblyRollup",
    "AssemblyRule",
    "AssemblyViolation",
    "AssemblyVote",
    "Convening",
    "Deliberator",
    "Failure",
    "Finding",
    "LedgerAcceptedKey",
    "LedgerCheckpoints",
    "LedgerCosigned",
    "LedgerDivergence",
    "LedgerElsewhere",
    "LedgerFirstUnknown",
    "LedgerKept",
    "LedgerKeys",
    "LedgerLog",
    "LedgerOpen",
    "LedgerRollback",
    "LedgerSignatures",
    "LedgerWitness",
    "Money",
    "Override",
    "Review",
    "Run",
    "Runs",
    "Spent",
    "Verification",
]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """why there is no answer; absent where there is one, and where the member was not asked."""

    excerpt: str | None = None
    """the beginning of what the member said in place of an answer."""
    http: int | None = None
    """the HTTP status of the last response, if it is an error."""
    kind: str
    """the status: timed_out, failed, schema_failed, over_budget, cancelled, late or erased."""
    message: str
    """the reason in a sentence."""
    retries: int
    """calls that repeat one that failed; re-prompts do not count."""


@dataclass(frozen=True, kw_only=True)
class Money:
    amount: str
    currency: str


@dataclass(frozen=True, kw_only=True)
class Spent:
    calls: int
    """calls made, re-prompts and retries included."""
    money: Money | None = None
    ms: int
    """milliseconds from question to end."""
    tokens_cached: int | None = None
    """of tokens_in, those read from a cache."""
    tokens_in: int | None = None
    """tokens of the prompts, those of a cache included."""
    tokens_out: int | None = None
    """tokens that the models wrote, reasoning included."""
    tokens_reasoning: int | None = None
    """of tokens_out, those of reasoning."""
    tokens_written: int | None = None
    """of tokens_in, those written to a cache for minutes."""
    tokens_written_long: int | None = None
    """of tokens_in, those written to a cache for an hour or longer."""


@dataclass(frozen=True, kw_only=True)
class Adjudicator:
    answer: dict[str, object] | None
    """the answer as it was given; see `quorate schema answer`."""
    executor: str | None = None
    """what the member was asked through; absent where it was not asked."""
    failure: Failure | None = None
    kind: str | None = None
    """the kind of that executor."""
    model: str | None = None
    """the model that answered, or the one that was asked where no answer names one."""
    requested_model: str | None = None
    """the model that was asked, where another one answered."""
    spent: Spent | None = None
    status: str
    """answered, timed_out, failed, …; not_asked where the member was not asked."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    answer: dict[str, object] | None
    """the answer as it was given; see `quorate schema answer`."""
    failure: Failure | None = None
    status: str
    """answered, timed_out, failed, …; not_asked where the member was not asked."""


@dataclass(frozen=True, kw_only=True)
class Deliberator:
    counted: str
    """round1, round2, round1_block or missing; empty while nothing is decided."""
    executor: str | None = None
    """what the member was asked through; absent where it was not asked."""
    id: str
    kind: str | None = None
    """the kind of that executor."""
    model: str | None = None
    """the model that answered, or the one that was asked where no answer names one."""
    requested_model: str | None = None
    """the model that was asked, where another one answered."""
    round1: Answer
    round2: Answer
    spent: Spent | None = None
    ungrounded: bool
    """whether it blocks without a quote that stands in the text."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    by: str
    column: int | None
    fix: str | None
    grounded: bool
    """whether the quote stands in the text."""
    issue: str
    line: int | None
    quote: str


@dataclass(frozen=True, kw_only=True)
class Override:
    by: str
    reason: str
    verdict: str


@dataclass(frozen=True, kw_only=True)
class Review(ShownReview):
    """A review, as `quorate review --format json` prints it."""

    adjudicator: Adjudicator
    artifact: str
    """the text as it was named; - for standard input."""
    artifact_type: str
    because: str
    """what the policy made of the answers."""
    council: str | None
    """the council's file; null for the built-in one."""
    deliberators: tuple[Deliberator, ...]
    dissent_summary: str | None
    executor: str
    exit: int
    """the exit code of the command."""
    findings: tuple[Finding, ...]
    ledger: str | None
    """the ledger that has the run, as --ledger takes it."""
    missing: tuple[str, ...]
    model_asked: bool
    notes: tuple[str, ...]
    override: Override | None
    """the last decision of a person."""
    partial: bool
    """whether a member lacks output."""
    policy: str
    """seed/2 or strict/1."""
    prior_verdicts_consulted: int
    reasoning: str
    """the adjudicator's."""
    revision_brief: str | None
    run: str
    """the id of the run."""
    schema: Literal["quorate.review/v1"]
    spent: Spent
    tier: int
    verdict: Literal["SHIP", "REVISE", "HOLD", "INCOMPLETE"] | None
    """null while nothing is decided."""


@dataclass(frozen=True, kw_only=True)
class AssemblyContribution:
    evidence: tuple[str, ...]
    member: str
    rationale: str | None
    vote: str | None


@dataclass(frozen=True, kw_only=True)
class AssemblyExact:
    total: str
    yes: str


@dataclass(frozen=True, kw_only=True)
class AssemblyVote:
    member: str
    vote: str | None
    weight: str
    withheld: str | None = None
    """the placeholder for a rationale that touches a locked trait."""


@dataclass(frozen=True, kw_only=True)
class AssemblyDecision:
    abstain: float
    contribution: tuple[AssemblyContribution, ...] | None = None
    exact: AssemblyExact
    missing: float
    no: float
    ratio: float
    result: str
    rule: str | None
    text: str | None = None
    tie: str | None = None
    votes: tuple[AssemblyVote, ...]
    yes: float


@dataclass(frozen=True, kw_only=True)
class AssemblyFragment:
    expires: str
    member: str
    priority: int
    rule: str
    severity: int
    text: str


@dataclass(frozen=True, kw_only=True)
class AssemblyConsultation:
    answer: object
    executor: str | None
    failure: Failure | None = None
    invocation: str
    ms: int | None
    status: str


@dataclass(frozen=True, kw_only=True)
class AssemblyMember:
    answer: object
    consultations: tuple[AssemblyConsultation, ...] | None = None
    executor: str | None = None
    """what the member was asked through; absent where it was not asked."""
    failure: Failure | None = None
    id: str
    kind: str | None = None
    """the kind of that executor."""
    message: str | None = None
    model: str | None = None
    """the model that answered, or the one that was asked where no answer names one."""
    requested_model: str | None = None
    """the model that was asked, where another one answered."""
    role: str
    spent: Spent | None = None
    status: str


@dataclass(frozen=True, kw_only=True)
class AssemblyMessage:
    from_: str = field(metadata={"json": "from"})
    round: int
    text: str
    to: Literal["*"] | tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AssemblyOutput:
    concern: str
    evidence: tuple[str, ...]
    severity: int
    suggestion: str


@dataclass(frozen=True, kw_only=True)
class AssemblyNode:
    from_: tuple[str, ...] = field(metadata={"json": "from"})
    member: str
    output: AssemblyOutput | None
    parent: str | None
    rule: str | None
    status: str


@dataclass(frozen=True, kw_only=True)
class AssemblyObjection:
    answered: bool
    member: str
    round: int
    taken_back: bool = field(metadata={"json": "takenBack"})


@dataclass(frozen=True, kw_only=True)
class AssemblyOutcome:
    because: str | None = None
    code: str | None = None
    ended_by: str | None = field(default=None, metadata={"json": "endedBy"})
    kind: Literal["guidance", "decision", "log", "rollup"]
    result: Literal["pass", "fail", "done", "refused", "incomplete"] | None
    rounds: int | None = None


@dataclass(frozen=True, kw_only=True)
class AssemblyRisk:
    level: Literal["ok", "watch", "intervene", "escalate"] | None
    severity: int | None


@dataclass(frozen=True, kw_only=True)
class AssemblyRollup:
    concern: str
    evidence: tuple[str, ...]
    severity: int
    suggestion: str


@dataclass(frozen=True, kw_only=True)
class AssemblyRule:
    fired: bool
    id: str
    kind: str
    members: tuple[str, ...]
    node: str | None = None


@dataclass(frozen=True, kw_only=True)
class AssemblyViolation:
    candidate: str
    code: str
    excerpt: str | None
    layer: object
    member: str | None
    to: object
    trait: str | None
    what: str | None


@dataclass(frozen=True, kw_only=True)
class Convening(ShownConvening):
    """A convening, as `quorate convene --format json` prints it."""

    assembly: str
    decision: AssemblyDecision | None = None
    executor: str
    exit: int
    """the exit code of the command."""
    fragments: tuple[AssemblyFragment, ...] | None = None
    members: tuple[AssemblyMember, ...]
    messages: tuple[AssemblyMessage, ...] | None = None
    missing: tuple[str, ...]
    mode: Literal["advisory", "voting", "peer", "hierarchy"]
    model_asked: bool
    nodes: tuple[AssemblyNode, ...] | None = None
    notes: tuple[str, ...]
    objecting: tuple[str, ...] | None = None
    objections: tuple[AssemblyObjection, ...] | None = None
    operators: tuple[str, ...] | None = None
    outcome: AssemblyOutcome
    partial: bool
    request: dict[str, object] | str
    """what the assembly was asked for."""
    risk: AssemblyRisk | None = None
    rollup: AssemblyRollup | None = None
    rules: tuple[AssemblyRule, ...]
    run: str
    schema: Literal["quorate.convene/v1"]
    should_escalate: bool | None = field(default=None, metadata={"json": "shouldEscalate"})
    spent: Spent
    subject: str
    """what it was about: a path, or -."""
    synthesis: dict[str, object] | None = None
    terminal: bool | None = None
    violations: tuple[AssemblyViolation, ...]


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of a list."""

    artifact: str
    """What it is about: a path, or `-`."""
    artifact_type: str
    blockers: tuple[str, ...]
    """Deliberators that block, voters that vote no, peers whose objection stands."""
    difference: str | None
    """The difference, if the verdict is altered or damaged."""
    imported: bool
    """Whether it was recorded in another ledger."""
    missing: tuple[str, ...]
    """Members without an answer."""
    mode: str
    """`council`, or the mode of an assembly."""
    open: bool
    """Whether nothing is decided yet."""
    opened: str
    """When it was opened, RFC 3339 in UTC."""
    override: str | None
    """A person's decision beside it."""
    producer: str | None
    """The operator that made what it is about; null where none is recorded."""
    run: str
    """Its id."""
    sealed: bool
    """Whether the last checkpoint covers all its records, and row, records and tree agree."""
    verdict: str | None
    """The verdict or outcome; null while nothing is decided; altered or damaged where the run's row differs from its records; erased where its outcome was."""


@dataclass(frozen=True, kw_only=True)
class Runs(ShownRuns):
    """The runs of a ledger, as `quorate runs --format json` prints them."""

    runs: tuple[Run, ...]
    schema: Literal["quorate.runs/v1"]


@dataclass(frozen=True, kw_only=True)
class LedgerAcceptedKey:
    """A person's acceptance of a key of the ledger."""

    by: str
    key: str
    """The public key, as text."""
    reason: str
    record: str
    """The accepting checkpoint in the ledger's stream."""


@dataclass(frozen=True, kw_only=True)
class LedgerCheckpoints:
    """The checkpoints of the ledger."""

    count: int
    sealed: int
    """The number of records that the last checkpoint covers."""
    signed: int
    """The number of records that the last signed checkpoint covers."""
    unproven: int
    """The number of unsigned records other than checkpoints after the last signed checkpoint. Any user who can write to the ledger may have added them."""
    unsealed: int
    """The number of records after the last checkpoint, excluding its own record."""
    unsigned: int
    """The number of unsigned checkpoints."""


@dataclass(frozen=True, kw_only=True)
class LedgerCosigned:
    """The last checkpoint that the HTTP witness signed."""

    at: int
    """The time of the signature, in seconds since the Unix epoch, by the witness's clock."""
    size: int
    """The number of records that it covers."""
    witness: str
    """The witness."""


@dataclass(frozen=True, kw_only=True)
class LedgerDivergence:
    """A difference between the ledger and what was recorded."""

    kind: str
    n: int | None
    """The record's number in it, if the divergence is about one record."""
    part: str
    place: int | None
    """The record's position in the ledger, from 1."""
    record: str | None
    """The record, as `run/n`."""
    run: str | None
    """The run or stream, if known."""
    until: int | None
    """The last possible position, if it is not known exactly."""
    what: str
    """The problem, in words."""


@dataclass(frozen=True, kw_only=True)
class LedgerKept:
    """The local copies of the last checkpoint that the ledger's own key signed; null if they were not read."""

    copies: int
    """The number of copies."""
    size: int
    """The number of records that the largest one covers."""
    unreadable: int
    """The number of copies that are not checkpoints that the ledger's key signed."""


@dataclass(frozen=True, kw_only=True)
class LedgerKeys:
    """The keys that signed checkpoints."""

    given: tuple[bool, ...]
    """Whether each of the given keys signed a checkpoint."""
    own: bool | None
    """Whether the ledger's own key signed the last signed checkpoint; null without such a key or checkpoint."""


@dataclass(frozen=True, kw_only=True)
class LedgerElsewhere:
    """Runs with lines in other logs, which were not checked."""

    file: str
    """The log of the first of them."""
    runs: int
    """The number of runs."""


@dataclass(frozen=True, kw_only=True)
class LedgerFirstUnknown:
    """The first of these lines."""

    line: int
    """Its number, from 1."""
    run: str


@dataclass(frozen=True, kw_only=True)
class LedgerLog:
    """The result for the log."""

    elsewhere: LedgerElsewhere | None
    """Runs with lines in other logs, which were not checked."""
    file: str
    """The log as shown to the user."""
    first_unknown: LedgerFirstUnknown | None
    """The first of these lines."""
    ours: int
    """The number of lines that belong to runs of this ledger."""
    unknown: int
    """The number of lines that name runs unknown to this ledger."""
    unreadable: int
    """The number of lines that cannot be parsed, or that follow up on a run without naming it."""


@dataclass(frozen=True, kw_only=True)
class LedgerOpen:
    """Runs that are not decided."""

    count: int
    runs: tuple[str, ...]
    """Some of them, first opened first."""


@dataclass(frozen=True, kw_only=True)
class LedgerRollback:
    """A rollback that a person accepted."""

    by: str
    reason: str
    record: str
    """Its record in the ledger's stream."""


@dataclass(frozen=True, kw_only=True)
class LedgerSignatures:
    """The signatures over records."""

    count: int
    """The number of signatures."""
    runs: int
    """The number of signed runs."""
    self_vouched: int
    """The number of signed runs whose keys only their own first record names."""
    unsigned_own: int
    """The number of unsigned records in the ledger's own stream, as long as no key is known that should have signed them."""
    unsigned_records: int
    """The number of unsigned records other than checkpoints."""


@dataclass(frozen=True, kw_only=True)
class LedgerWitness:
    """The result for the witness."""

    checkpoints: int
    """The number of checkpoints of this ledger that it has."""
    file: str | None
    """Its file as shown to the user."""
    size: int
    """The size of the largest one."""
    torn: int
    """The number of parts that are not signed notes, such as an incomplete one."""


@dataclass(frozen=True, kw_only=True)
class Verification(ShownVerification):
    """A verification of the ledger, as `quorate ledger verify --format json` prints it."""

    accepted_keys: tuple[LedgerAcceptedKey, ...]
    """The keys of the ledger that follow without a voucher."""
    checkpoints: LedgerCheckpoints
    """The checkpoints of the ledger."""
    cosigned: LedgerCosigned | None
    """The last checkpoint that the HTTP witness signed."""
    divergences: tuple[LedgerDivergence, ...]
    """Divergences, ordered by position in the ledger; at most a hundred."""
    erased: int
    """The number of verified records with an erased body."""
    found: int
    """The number of divergences."""
    holds: bool
    """Whether nothing differs."""
    kept: LedgerKept | None
    """The local copies of the last checkpoint that the ledger's own key signed; null if they were not read."""
    keys: LedgerKeys
    """The keys that signed checkpoints."""
    last_signed: int | None
    """The number of records that the last signed checkpoint kept on this machine covers."""
    ledger: str
    """The ledger's address as shown to the user."""
    log: LedgerLog | None
    """The result for the log."""
    open: LedgerOpen
    """Runs that are not decided."""
    origin: str | None
    """The ledger's origin; null before its first checkpoint."""
    records: int
    """The number of verified records."""
    rollbacks: tuple[LedgerRollback, ...]
    """Rollbacks that a person accepted, oldest first."""
    root: str | None
    """The root over them, in hexadecimal digits."""
    schema: Literal["quorate.verify/v1"]
    signatures: LedgerSignatures
    """The signatures over records."""
    since: int
    """The number of records before the start of the verification."""
    size: int | None
    """The number of records of the ledger; null if a record is missing."""
    streams: int
    """The number of their runs and other streams."""
    texts: int
    """The number of texts that they name."""
    witness: LedgerWitness | None
    """The result for the witness."""
