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
    by: str
    key: str
    reason: str
    record: str


@dataclass(frozen=True, kw_only=True)
class LedgerCheckpoints:
    count: int
    sealed: int
    """records that the last one is over."""
    signed: int
    """records that the last signed one is over."""
    unproven: int
    """records that are neither signed nor under a signed checkpoint."""
    unsealed: int
    """records after the last one."""
    unsigned: int


@dataclass(frozen=True, kw_only=True)
class LedgerCosigned:
    at: int
    """seconds since the Unix epoch."""
    size: int
    witness: str


@dataclass(frozen=True, kw_only=True)
class LedgerDivergence:
    kind: str
    n: int | None
    part: str
    place: int | None
    record: str | None
    run: str | None
    until: int | None
    what: str


@dataclass(frozen=True, kw_only=True)
class LedgerKept:
    copies: int
    size: int
    unreadable: int


@dataclass(frozen=True, kw_only=True)
class LedgerKeys:
    given: tuple[bool, ...]
    """for each key that was given, whether it signed a checkpoint."""
    own: bool | None
    """whether the ledger's own key signed the last signed checkpoint; null where there is no such key or checkpoint."""


@dataclass(frozen=True, kw_only=True)
class LedgerElsewhere:
    file: str
    runs: int


@dataclass(frozen=True, kw_only=True)
class LedgerFirstUnknown:
    line: int
    run: str


@dataclass(frozen=True, kw_only=True)
class LedgerLog:
    elsewhere: LedgerElsewhere | None
    """runs with lines in other logs."""
    file: str
    first_unknown: LedgerFirstUnknown | None
    ours: int
    """lines of runs of this ledger."""
    unknown: int
    """lines of runs that this ledger does not have."""
    unreadable: int


@dataclass(frozen=True, kw_only=True)
class LedgerOpen:
    """runs that are not decided."""

    count: int
    runs: tuple[str, ...]
    """some of them."""


@dataclass(frozen=True, kw_only=True)
class LedgerRollback:
    by: str
    reason: str
    record: str


@dataclass(frozen=True, kw_only=True)
class LedgerSignatures:
    count: int
    """signatures over records."""
    runs: int
    """signed runs."""
    self_vouched: int
    """signed runs that only their own first record vouches for."""
    unsigned_own: int
    """unsigned records of the ledger's own."""
    unsigned_records: int
    """unsigned records other than checkpoints."""


@dataclass(frozen=True, kw_only=True)
class LedgerWitness:
    checkpoints: int
    file: str | None
    size: int
    torn: int
    """parts that are no signed note."""


@dataclass(frozen=True, kw_only=True)
class Verification(ShownVerification):
    """A verification of the ledger, as `quorate ledger verify --format json` prints it."""

    accepted_keys: tuple[LedgerAcceptedKey, ...]
    """keys that a person accepted."""
    checkpoints: LedgerCheckpoints
    cosigned: LedgerCosigned | None
    """what the witness that is asked over HTTP signed last."""
    divergences: tuple[LedgerDivergence, ...]
    """what differs, by place; not more than a hundred."""
    erased: int
    """of these, those without a body."""
    found: int
    """how many places differ."""
    holds: bool
    """whether nothing differs."""
    kept: LedgerKept | None
    """the copies of that checkpoint."""
    keys: LedgerKeys
    last_signed: int | None
    """records that the last signed checkpoint kept on this machine is over."""
    ledger: str
    """the ledger, as --ledger takes it."""
    log: LedgerLog | None
    """the log that was compared."""
    open: LedgerOpen
    """runs that are not decided."""
    origin: str | None
    """which ledger it is; null before its first checkpoint."""
    records: int
    """records that were looked at."""
    rollbacks: tuple[LedgerRollback, ...]
    """rollbacks that a person accepted."""
    root: str | None
    """the root over them, in hexadecimal."""
    schema: Literal["quorate.verify/v1"]
    signatures: LedgerSignatures
    since: int
    """after how many records it began."""
    size: int | None
    """records of the ledger; null where one is missing."""
    streams: int
    """runs and other streams."""
    texts: int
    """texts that records mention."""
    witness: LedgerWitness | None
    """the witness that was compared."""
