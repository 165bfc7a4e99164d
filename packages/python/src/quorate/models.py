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
    "Missing",
    "Money",
    "Override",
    "Review",
    "Run",
    "Runs",
    "Samples",
    "Spent",
    "Tried",
    "Verification",
]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why an invocation has no answer."""

    excerpt: str | None = None
    """The beginning of the text that the member gave instead of an answer."""
    http: int | None = None
    """The HTTP status of the last response, if it is an error."""
    kind: str
    """The status of the invocation: `timed_out`, `failed`, `schema_failed`, `over_budget`, `cancelled`, `late` or `erased`."""
    message: str
    """One sentence; never empty."""
    retries: int
    """Calls that repeat one that failed. Re-prompts do not count."""


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A sample without an answer."""

    sample: int
    """The number of the sample, counted from 1."""
    why: str
    """The reason."""


@dataclass(frozen=True, kw_only=True)
class Samples:
    """How its samples differ, if it was asked several times."""

    agree: int
    """How many of them agree with the answer that counts, in the fields that decide; 0 where no answer counts."""
    answered: int
    """How many of them have an answer that fits."""
    asked: int
    """How many samples were asked for."""
    chosen: int | None = None
    """The number of the sample whose answer counts, counted from 1."""
    missing: tuple[Missing, ...] | None = None
    """The samples without an answer."""
    spread: dict[str, object]
    """For each typed field, how many samples gave each value."""


@dataclass(frozen=True, kw_only=True)
class Money:
    """A sum of US dollars, exact to a billionth."""

    amount: str
    """A decimal number."""
    currency: Literal["USD"]


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What an invocation cost."""

    calls: int
    """Calls made, re-prompts and retries included."""
    money: Money | None = None
    """The price, if it is known."""
    ms: int
    """Milliseconds from question to end."""
    tokens_cached: int | None = None
    """Of `tokens_in`, those read from a cache."""
    tokens_in: int | None = None
    """Tokens of the prompts, those of a cache included."""
    tokens_out: int | None = None
    """Tokens that the models wrote, reasoning included."""
    tokens_reasoning: int | None = None
    """Of `tokens_out`, those of reasoning."""
    tokens_written: int | None = None
    """Of `tokens_in`, those written to a cache for minutes."""
    tokens_written_long: int | None = None
    """Of `tokens_in`, those written to a cache for an hour or longer."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """An executor whose service failed, so that a stand-in was asked."""

    executor: str
    """The executor's name."""
    http: int | None = None
    """The HTTP status of its last response, if it is an error."""
    message: str
    """Why it gave no answer."""


@dataclass(frozen=True, kw_only=True)
class Adjudicator:
    """The adjudicator's answer."""

    answer: dict[str, object] | None
    """The answer as it was given; see `quorate schema answer`."""
    executor: str | None = None
    """The name of its executor; that of the last question, if a resumed run used another."""
    failure: Failure | None = None
    """The reason for a missing answer, in full."""
    kind: str | None = None
    """The executor's kind."""
    model: str | None = None
    """The model that answered last; the requested model if no answer names one."""
    requested_model: str | None = None
    """The requested model, if another one answered."""
    samples: Samples | None = None
    """How its samples differ, if it was asked several times."""
    spent: Spent | None = None
    """Calls, known tokens and prices, and the time from each question to its end, added up."""
    stand_in_for: str | None = None
    """The executor that it stands in for, whose service failed."""
    status: str
    """`answered`, `timed_out`, …; `not_asked` without an invocation."""
    tried: tuple[Tried, ...] | None = None
    """The executors before the stand-in, with the reasons why they gave no answer."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How an invocation ended."""

    answer: dict[str, object] | None
    """The answer as it was given; see `quorate schema answer`."""
    failure: Failure | None = None
    """The reason for a missing answer, in full."""
    samples: Samples | None = None
    """How its samples differ, if it was asked several times."""
    status: str
    """`answered`, `timed_out`, …; `not_asked` without an invocation."""


@dataclass(frozen=True, kw_only=True)
class Deliberator:
    """A deliberator's part in a review."""

    counted: str
    """`round1`, `round2`, `round1_block` or `missing`; empty while the run is undecided."""
    executor: str | None = None
    """The name of its executor; that of the last question, if a resumed run used another."""
    id: str
    """Its id in the council."""
    kind: str | None = None
    """The executor's kind."""
    model: str | None = None
    """The model that answered last; the requested model if no answer names one."""
    requested_model: str | None = None
    """The requested model, if another one answered."""
    round1: Answer
    """Its first answer."""
    round2: Answer
    """Its second answer."""
    spent: Spent | None = None
    """Calls, known tokens and prices, and the time from each question to its end, added up."""
    stand_in_for: str | None = None
    """The executor that it stands in for, whose service failed."""
    tried: tuple[Tried, ...] | None = None
    """The executors before the stand-in, with the reasons why they gave no answer."""
    ungrounded: bool
    """Whether it blocks without a single finding whose quote is in the text."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A deliberator's finding, as the outcome's record has it."""

    by: str
    """The deliberator that found it."""
    column: int | None
    """From 1, in characters."""
    fix: str | None
    """How to mend it."""
    grounded: bool
    """Whether the quote stands in the text."""
    issue: str
    """What is wrong."""
    line: int | None
    """From 1; null if the quote is not in the text."""
    quote: str
    """The quoted words."""


@dataclass(frozen=True, kw_only=True)
class Override:
    """The latest decision of a person."""

    by: str
    """The person's name."""
    reason: str
    """The reason, in the person's words."""
    verdict: str
    """The person's verdict: `SHIP`, `REVISE` or `HOLD`."""


@dataclass(frozen=True, kw_only=True)
class Review(ShownReview):
    """A review, as `quorate review --format json` prints it."""

    adjudicator: Adjudicator
    """The adjudicator's answer."""
    artifact: str
    """The artifact: a path, or `-` for standard input."""
    artifact_type: str
    """The type of the text, under which verdicts are remembered."""
    because: str
    """The policy's reason, in one sentence."""
    council: str | None
    """The council's file as shown to the user; null for the built-in one."""
    deliberators: tuple[Deliberator, ...]
    """In roster order."""
    dissent_summary: str | None
    """Dissenting members, and their points."""
    executor: str
    """The names of the executors."""
    exit: int
    """The exit code of the command."""
    findings: tuple[Finding, ...]
    """In the order of the text; those without a line last."""
    ledger: str | None
    """The address of the ledger that has the run; null if the caller did not ask for it, or it was removed."""
    missing: tuple[str, ...]
    """The members without an answer."""
    model_asked: bool
    """Whether a model was asked."""
    notes: tuple[str, ...]
    """Notes. If no model was asked, that note comes first."""
    override: Override | None
    """The latest decision of a person."""
    partial: bool
    """Whether a member lacks an answer."""
    policy: str
    """`seed/2`, `strict/1`, or `table/` and a hash of the council's own table."""
    prior_verdicts_consulted: int
    """Earlier verdicts that the adjudicator saw."""
    reasoning: str
    """The adjudicator's reasoning, or `because` without one."""
    revision_brief: str | None
    """What should change, in the adjudicator's words."""
    run: str
    """The run's id in the ledger."""
    schema: Literal["quorate.review/v1"]
    """The version of the JSON."""
    spent: Spent
    """The calls of the run, their cost as far as known, and the working time."""
    tier: int
    """The tier, from 1 (strictest) to 3."""
    verdict: Literal["SHIP", "REVISE", "HOLD", "INCOMPLETE"] | None
    """The verdict; null while the run is undecided."""


@dataclass(frozen=True, kw_only=True)
class AssemblyContribution:
    """The words of a member that decided alone."""

    evidence: tuple[str, ...]
    """The quotes that the member gave."""
    member: str
    """The member's id."""
    rationale: str | None
    """The reason that the member gave."""
    vote: str | None
    """`yes` or `no`."""


@dataclass(frozen=True, kw_only=True)
class AssemblyExact:
    """The ratio without rounding."""

    total: str
    """The weight that the deciding rule counts."""
    yes: str
    """The weight of yes: `5/2`, or a whole number."""


@dataclass(frozen=True, kw_only=True)
class AssemblyVote:
    """The vote of one member, as the count has it."""

    member: str
    """The member's id."""
    vote: str | None
    """`yes`, `no`, `abstain`, `missing` or `cancelled`."""
    weight: str
    """The member's weight, as a fraction."""
    withheld: str | None = None
    """The placeholder for a rationale that touches a locked trait."""


@dataclass(frozen=True, kw_only=True)
class AssemblyDecision:
    """Voting: the count of the votes."""

    abstain: float
    """The weights that abstain."""
    contribution: tuple[AssemblyContribution, ...] | None = None
    """Who decided alone, by a `terminal` rule, and why."""
    exact: AssemblyExact
    """The ratio without rounding."""
    missing: float
    """The weights without a vote."""
    no: float
    """The weights that say no."""
    ratio: float
    """Yes by total, rounded."""
    result: str
    """`pass`, `fail`, `refused` or `incomplete`."""
    rule: str | None
    """The rule that decided; null where nothing was decided."""
    text: str | None = None
    """The proposal in short, and the result in a sentence."""
    tie: str | None = None
    """How a tie was broken."""
    votes: tuple[AssemblyVote, ...]
    """Every voter, in roster order."""
    yes: float
    """The weights that say yes."""


@dataclass(frozen=True, kw_only=True)
class AssemblyFragment:
    """A piece of guidance."""

    expires: str
    """When it stops to hold, RFC 3339."""
    member: str
    """The author of these words."""
    priority: int
    """How weighty it is."""
    rule: str
    """The rule that emitted it."""
    severity: int
    """How grave its author found it, 0 to 10."""
    text: str
    """What the author suggests to the agent."""


@dataclass(frozen=True, kw_only=True)
class AssemblyConsultation:
    """A question to a member, and its result."""

    answer: object
    """The answer, as given."""
    executor: str | None
    """The name of the executor."""
    failure: Failure | None = None
    """The reason for a missing answer, in full."""
    invocation: str
    """Its id in the run's records."""
    ms: int | None
    """The duration, in milliseconds."""
    probabilities: dict[str, object] | None = None
    """The probability of each option, if a decision model answered; of a yes-or-no question that of `yes` alone."""
    samples: Samples | None = None
    """How its samples differ, if it was asked several times."""
    status: str
    """How it ended."""


@dataclass(frozen=True, kw_only=True)
class AssemblyMember:
    """A member and all its questions."""

    answer: object
    """The last answer, as given."""
    consultations: tuple[AssemblyConsultation, ...] | None = None
    """All questions in order, if there are several."""
    executor: str | None = None
    """The name of its executor; that of the last question, if a resumed run used another."""
    failure: Failure | None = None
    id: str
    """Its id in the manifest."""
    kind: str | None = None
    """The executor's kind."""
    message: str | None = None
    """The reason for a missing answer, if the record has more than the status."""
    model: str | None = None
    """The model that answered last; the requested model if no answer names one."""
    probabilities: dict[str, object] | None = None
    """The probability of each option of the last answer, if a decision model gave it."""
    requested_model: str | None = None
    """The requested model, if another one answered."""
    role: str
    """The title of the role."""
    samples: Samples | None = None
    """How the samples of the last answer differ, if it was asked several times."""
    spent: Spent | None = None
    """Calls, known tokens and prices, and the time from each question to its end, added up."""
    stand_in_for: str | None = None
    """The executor that it stands in for, whose service failed."""
    status: str
    """The status of the last question; `not_asked` without one."""
    tried: tuple[Tried, ...] | None = None
    """The executors before the stand-in, with the reasons why they gave no answer."""


@dataclass(frozen=True, kw_only=True)
class AssemblyMessage:
    """A message that was delivered."""

    from_: str = field(metadata={"json": "from"})
    """The id of its author."""
    round: int
    """The round that it was sent in, from 1."""
    text: str
    """The message."""
    to: Literal["*"] | tuple[str, ...]
    """To whom: members, or `*` for everybody in reach."""


@dataclass(frozen=True, kw_only=True)
class AssemblyOutput:
    """What it passes up."""

    concern: str
    """What is wrong."""
    evidence: tuple[str, ...]
    """What it rests on."""
    severity: int
    """How grave it is, 0 to 10."""
    suggestion: str
    """What to do about it."""


@dataclass(frozen=True, kw_only=True)
class AssemblyNode:
    """A node of a hierarchy."""

    from_: tuple[str, ...] = field(metadata={"json": "from"})
    """The children that it is made of."""
    member: str
    """The member's id."""
    output: AssemblyOutput | None
    """What it passes up."""
    parent: str | None
    """To whom it reports."""
    rule: str | None
    """The rule that made what it passes up; null for its own answer."""
    status: str
    """`passed`, `passed_up` (it gave nothing itself), `silent`, `refused` or `not_asked`."""


@dataclass(frozen=True, kw_only=True)
class AssemblyObjection:
    """What a member objected to last."""

    answered: bool
    """Whether another member's message reached its author after it."""
    member: str
    """The member's id."""
    round: int
    """The round of the objection, from 1."""
    taken_back: bool = field(metadata={"json": "takenBack"})
    """Whether its author took it back."""


@dataclass(frozen=True, kw_only=True)
class AssemblyOutcome:
    """The outcome, and its reason."""

    because: str | None = None
    """The reason in a sentence, where the result alone does not explain itself."""
    code: str | None = None
    """A stable word for the reason, if there is one: `no_voters`, `locked`, `budget_exhausted`, …"""
    ended_by: str | None = field(default=None, metadata={"json": "endedBy"})
    """Peer: what ended the exchange."""
    kind: Literal["guidance", "decision", "log", "rollup"]
    """The kind of the outcome, which follows from the mode."""
    result: Literal["pass", "fail", "done", "refused", "incomplete"] | None
    """The outcome in one word; null while the run is undecided."""
    rounds: int | None = None
    """Peer: the number of rounds."""


@dataclass(frozen=True, kw_only=True)
class AssemblyRisk:
    """Advisory and hierarchy: the severity."""

    level: Literal["ok", "watch", "intervene", "escalate"] | None
    """`ok`, `watch`, `intervene` or `escalate`, or another label of the manifest."""
    severity: int | None
    """The highest severity, 0 to 10."""


@dataclass(frozen=True, kw_only=True)
class AssemblyRollup:
    """Hierarchy: the root's report."""

    concern: str
    """What is wrong."""
    evidence: tuple[str, ...]
    """What it rests on."""
    severity: int
    """How grave it is, 0 to 10."""
    suggestion: str
    """What to do about it."""


@dataclass(frozen=True, kw_only=True)
class AssemblyRule:
    """A rule that was applied."""

    fired: bool
    """Whether it did anything."""
    id: str
    """Its id in the manifest."""
    kind: str
    """Its kind: `quorum`, `terminal`, `aggregate`, …"""
    members: tuple[str, ...]
    """Whose words made it."""
    node: str | None = None
    """The node that it was applied at, in a hierarchy."""


@dataclass(frozen=True, kw_only=True)
class AssemblyViolation:
    """Something that was refused."""

    candidate: str
    code: str
    """`assembly_overlay_lock_violation`, `lock_unchecked` or `out_of_reach`."""
    excerpt: str | None
    layer: object
    """Which reading of the text hit it."""
    member: str | None
    """Whose words; null where they are the program's."""
    to: object
    """Whom a message did not reach."""
    trait: str | None
    what: str | None
    """What was checked: `fragment`, `decision`, `rationale`, `message`, `concern`, `evidence`, `suggestion`."""


@dataclass(frozen=True, kw_only=True)
class Convening(ShownConvening):
    """A convening, as `quorate convene --format json` prints it."""

    assembly: str
    """The assembly's name."""
    decision: AssemblyDecision | None = None
    """Voting: the count of the votes."""
    executor: str
    """The names of the executors."""
    exit: int
    """The exit code: 0 pass or done, 1 fail, 2 refused, 3 incomplete or undecided."""
    fragments: tuple[AssemblyFragment, ...] | None = None
    """Advisory: the guidance."""
    members: tuple[AssemblyMember, ...]
    """All members with all their questions, in the manifest's display order."""
    messages: tuple[AssemblyMessage, ...] | None = None
    """Peer: the delivered messages, in order."""
    missing: tuple[str, ...]
    """The members that were asked and gave no output."""
    mode: Literal["advisory", "voting", "peer", "hierarchy"]
    """The mode."""
    model_asked: bool
    """Whether a model was asked."""
    nodes: tuple[AssemblyNode, ...] | None = None
    """Hierarchy: every node, in roster order."""
    notes: tuple[str, ...]
    """Notes; first the ones about a missing model and missing members."""
    objecting: tuple[str, ...] | None = None
    """Peer: members whose objection stands."""
    objections: tuple[AssemblyObjection, ...] | None = None
    """Peer: each member's last objection."""
    operators: tuple[str, ...] | None = None
    """Advisory: the operators whose prompts the guidance goes into."""
    outcome: AssemblyOutcome
    """The outcome, and its reason."""
    partial: bool
    """Whether an asked member gave no output."""
    request: dict[str, object] | str
    """The request to the mode."""
    risk: AssemblyRisk | None = None
    """Advisory and hierarchy: the severity."""
    rollup: AssemblyRollup | None = None
    """Hierarchy: the root's report."""
    rules: tuple[AssemblyRule, ...]
    """The applied rules, in order."""
    run: str
    """The run's id in the ledger."""
    schema: Literal["quorate.convene/v1"]
    """The version of the JSON."""
    should_escalate: bool | None = field(default=None, metadata={"json": "shouldEscalate"})
    """Advisory and hierarchy: whether to call a human."""
    spent: Spent
    """The calls of the run, their cost as far as known, and the working time."""
    subject: str
    """The subject: a path, or `-`."""
    synthesis: dict[str, object] | None = None
    """Peer: outputs of custom rules on the log."""
    terminal: bool | None = None
    """Advisory and voting: whether a rule ended the synthesis."""
    violations: tuple[AssemblyViolation, ...]
    """Refused texts, in order."""


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
    """The runs of the page: open ones first, in each part the newest first."""
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
