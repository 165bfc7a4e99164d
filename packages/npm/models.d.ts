// What commands print as JSON.
//
// Made from the schemas of `quorate schema`; CONTRIBUTING.md says how.

/** why there is no answer; absent where there is one, and where the member was not asked */
export interface Failure {
  /** the beginning of what the member said in place of an answer */
  readonly excerpt?: string;
  /** the HTTP status of the last response, if it is an error */
  readonly http?: number;
  /** the status: timed_out, failed, schema_failed, over_budget, cancelled, late or erased */
  readonly kind: string;
  /** the reason in a sentence */
  readonly message: string;
  /** calls that repeat one that failed; re-prompts do not count */
  readonly retries: number;
}

export interface Money {
  readonly amount: string;
  readonly currency: string;
}

export interface Spent {
  /** calls made, re-prompts and retries included */
  readonly calls: number;
  readonly money?: Money;
  /** milliseconds from question to end */
  readonly ms: number;
  /** of tokens_in, those read from a cache */
  readonly tokens_cached?: number;
  /** tokens of the prompts, those of a cache included */
  readonly tokens_in?: number;
  /** tokens that the models wrote, reasoning included */
  readonly tokens_out?: number;
  /** of tokens_out, those of reasoning */
  readonly tokens_reasoning?: number;
  /** of tokens_in, those written to a cache for minutes */
  readonly tokens_written?: number;
  /** of tokens_in, those written to a cache for an hour or longer */
  readonly tokens_written_long?: number;
}

export interface Adjudicator {
  /** the answer as it was given; see `quorate schema answer` */
  readonly answer: { readonly [key: string]: unknown } | null;
  /** what the member was asked through; absent where it was not asked */
  readonly executor?: string;
  readonly failure?: Failure;
  /** the kind of that executor */
  readonly kind?: string;
  /** the model that answered, or the one that was asked where no answer names one */
  readonly model?: string;
  /** the model that was asked, where another one answered */
  readonly requested_model?: string;
  readonly spent?: Spent;
  /** answered, timed_out, failed, …; not_asked where the member was not asked */
  readonly status: string;
}

export interface Answer {
  /** the answer as it was given; see `quorate schema answer` */
  readonly answer: { readonly [key: string]: unknown } | null;
  readonly failure?: Failure;
  /** answered, timed_out, failed, …; not_asked where the member was not asked */
  readonly status: string;
}

export interface Deliberator {
  /** round1, round2, round1_block or missing; empty while nothing is decided */
  readonly counted: string;
  /** what the member was asked through; absent where it was not asked */
  readonly executor?: string;
  readonly id: string;
  /** the kind of that executor */
  readonly kind?: string;
  /** the model that answered, or the one that was asked where no answer names one */
  readonly model?: string;
  /** the model that was asked, where another one answered */
  readonly requested_model?: string;
  readonly round1: Answer;
  readonly round2: Answer;
  readonly spent?: Spent;
  /** whether it blocks without a quote that stands in the text */
  readonly ungrounded: boolean;
}

export interface Finding {
  readonly by: string;
  readonly column: number | null;
  readonly fix: string | null;
  /** whether the quote stands in the text */
  readonly grounded: boolean;
  readonly issue: string;
  readonly line: number | null;
  readonly quote: string;
}

export interface Override {
  readonly by: string;
  readonly reason: string;
  readonly verdict: string;
}

/** A review, as `quorate review --format json` prints it */
export interface Review {
  readonly adjudicator: Adjudicator;
  /** the text as it was named; - for standard input */
  readonly artifact: string;
  readonly artifact_type: string;
  /** what the policy made of the answers */
  readonly because: string;
  /** the council's file; null for the built-in one */
  readonly council: string | null;
  readonly deliberators: readonly Deliberator[];
  readonly dissent_summary: string | null;
  readonly executor: string;
  /** the exit code of the command */
  readonly exit: number;
  readonly findings: readonly Finding[];
  /** the ledger that has the run, as --ledger takes it */
  readonly ledger: string | null;
  readonly missing: readonly string[];
  readonly model_asked: boolean;
  readonly notes: readonly string[];
  /** the last decision of a person */
  readonly override: null | Override;
  /** whether a member lacks output */
  readonly partial: boolean;
  /** seed/2 or strict/1 */
  readonly policy: string;
  readonly prior_verdicts_consulted: number;
  /** the adjudicator's */
  readonly reasoning: string;
  readonly revision_brief: string | null;
  /** the id of the run */
  readonly run: string;
  readonly schema: "quorate.review/v1";
  readonly spent: Spent;
  readonly tier: number;
  /** null while nothing is decided */
  readonly verdict: "SHIP" | "REVISE" | "HOLD" | "INCOMPLETE" | null;
}

export interface AssemblyContribution {
  readonly evidence: readonly string[];
  readonly member: string;
  readonly rationale: string | null;
  readonly vote: string | null;
}

export interface AssemblyExact {
  readonly total: string;
  readonly yes: string;
}

export interface AssemblyVote {
  readonly member: string;
  readonly vote: string | null;
  readonly weight: string;
  /** the placeholder for a rationale that touches a locked trait */
  readonly withheld?: string;
}

export interface AssemblyDecision {
  readonly abstain: number;
  readonly contribution?: readonly AssemblyContribution[];
  readonly exact: AssemblyExact;
  readonly missing: number;
  readonly no: number;
  readonly ratio: number;
  readonly result: string;
  readonly rule: string | null;
  readonly text?: string;
  readonly tie?: string;
  readonly votes: readonly AssemblyVote[];
  readonly yes: number;
}

export interface AssemblyFragment {
  readonly expires: string;
  readonly member: string;
  readonly priority: number;
  readonly rule: string;
  readonly severity: number;
  readonly text: string;
}

export interface AssemblyConsultation {
  readonly answer: unknown;
  readonly executor: string | null;
  readonly failure?: Failure;
  readonly invocation: string;
  readonly ms: number | null;
  readonly status: string;
}

export interface AssemblyMember {
  readonly answer: unknown;
  readonly consultations?: readonly AssemblyConsultation[];
  /** what the member was asked through; absent where it was not asked */
  readonly executor?: string;
  readonly failure?: Failure;
  readonly id: string;
  /** the kind of that executor */
  readonly kind?: string;
  readonly message?: string;
  /** the model that answered, or the one that was asked where no answer names one */
  readonly model?: string;
  /** the model that was asked, where another one answered */
  readonly requested_model?: string;
  readonly role: string;
  readonly spent?: Spent;
  readonly status: string;
}

export interface AssemblyMessage {
  readonly from: string;
  readonly round: number;
  readonly text: string;
  readonly to: "*" | readonly string[];
}

export interface AssemblyOutput {
  readonly concern: string;
  readonly evidence: readonly string[];
  readonly severity: number;
  readonly suggestion: string;
}

export interface AssemblyNode {
  readonly from: readonly string[];
  readonly member: string;
  readonly output: null | AssemblyOutput;
  readonly parent: string | null;
  readonly rule: string | null;
  readonly status: string;
}

export interface AssemblyObjection {
  readonly answered: boolean;
  readonly member: string;
  readonly round: number;
  readonly takenBack: boolean;
}

export interface AssemblyOutcome {
  readonly because?: string;
  readonly code?: string;
  readonly endedBy?: string;
  readonly kind: "guidance" | "decision" | "log" | "rollup";
  readonly result: "pass" | "fail" | "done" | "refused" | "incomplete" | null;
  readonly rounds?: number;
}

export interface AssemblyRisk {
  readonly level: "ok" | "watch" | "intervene" | "escalate" | null;
  readonly severity: number | null;
}

export interface AssemblyRollup {
  readonly concern: string;
  readonly evidence: readonly string[];
  readonly severity: number;
  readonly suggestion: string;
}

export interface AssemblyRule {
  readonly fired: boolean;
  readonly id: string;
  readonly kind: string;
  readonly members: readonly string[];
  readonly node?: string;
}

export interface AssemblyViolation {
  readonly candidate: string;
  readonly code: string;
  readonly excerpt: string | null;
  readonly layer: unknown;
  readonly member: string | null;
  readonly to: unknown;
  readonly trait: string | null;
  readonly what: string | null;
}

/** A convening, as `quorate convene --format json` prints it */
export interface Convening {
  readonly assembly: string;
  readonly decision?: AssemblyDecision;
  readonly executor: string;
  /** the exit code of the command */
  readonly exit: number;
  readonly fragments?: readonly AssemblyFragment[];
  readonly members: readonly AssemblyMember[];
  readonly messages?: readonly AssemblyMessage[];
  readonly missing: readonly string[];
  readonly mode: "advisory" | "voting" | "peer" | "hierarchy";
  readonly model_asked: boolean;
  readonly nodes?: readonly AssemblyNode[];
  readonly notes: readonly string[];
  readonly objecting?: readonly string[];
  readonly objections?: readonly AssemblyObjection[];
  readonly operators?: readonly string[];
  readonly outcome: AssemblyOutcome;
  readonly partial: boolean;
  /** what the assembly was asked for */
  readonly request: { readonly [key: string]: unknown } | string;
  readonly risk?: AssemblyRisk;
  readonly rollup?: null | AssemblyRollup;
  readonly rules: readonly AssemblyRule[];
  readonly run: string;
  readonly schema: "quorate.convene/v1";
  readonly shouldEscalate?: boolean;
  readonly spent: Spent;
  /** what it was about: a path, or - */
  readonly subject: string;
  readonly synthesis?: { readonly [key: string]: unknown };
  readonly terminal?: boolean;
  readonly violations: readonly AssemblyViolation[];
}

/** A run of a list. */
export interface Run {
  /** What it is about: a path, or `-` */
  readonly artifact: string;
  readonly artifact_type: string;
  /** Deliberators that block, voters that vote no, peers whose objection stands */
  readonly blockers: readonly string[];
  /** The difference, if the verdict is altered or damaged */
  readonly difference: string | null;
  /** Whether it was recorded in another ledger */
  readonly imported: boolean;
  /** Members without an answer */
  readonly missing: readonly string[];
  /** `council`, or the mode of an assembly */
  readonly mode: string;
  /** Whether nothing is decided yet */
  readonly open: boolean;
  /** When it was opened, RFC 3339 in UTC */
  readonly opened: string;
  /** A person's decision beside it */
  readonly override: string | null;
  /** The operator that made what it is about; null where none is recorded */
  readonly producer: string | null;
  /** Its id */
  readonly run: string;
  /** Whether the last checkpoint covers all its records, and row, records and tree agree */
  readonly sealed: boolean;
  /** The verdict or outcome; null while nothing is decided; altered or damaged where the run's row differs from its records; erased where its outcome was */
  readonly verdict: string | null;
}

/** The runs of a ledger, as `quorate runs --format json` prints them */
export interface Runs {
  readonly runs: readonly Run[];
  readonly schema: "quorate.runs/v1";
}

/** A person's acceptance of a key of the ledger. */
export interface LedgerAcceptedKey {
  readonly by: string;
  /** The public key, as text. */
  readonly key: string;
  readonly reason: string;
  /** The accepting checkpoint in the ledger's stream. */
  readonly record: string;
}

/** The checkpoints of the ledger. */
export interface LedgerCheckpoints {
  readonly count: number;
  /** The number of records that the last checkpoint covers. */
  readonly sealed: number;
  /** The number of records that the last signed checkpoint covers. */
  readonly signed: number;
  /** The number of unsigned records other than checkpoints after the last signed checkpoint. Any user who can write to the ledger may have added them. */
  readonly unproven: number;
  /** The number of records after the last checkpoint, excluding its own record. */
  readonly unsealed: number;
  /** The number of unsigned checkpoints. */
  readonly unsigned: number;
}

/** The last checkpoint that the HTTP witness signed. */
export interface LedgerCosigned {
  /** The time of the signature, in seconds since the Unix epoch, by the witness's clock. */
  readonly at: number;
  /** The number of records that it covers. */
  readonly size: number;
  /** The witness. */
  readonly witness: string;
}

/** A difference between the ledger and what was recorded. */
export interface LedgerDivergence {
  readonly kind: string;
  /** The record's number in it, if the divergence is about one record. */
  readonly n: number | null;
  readonly part: string;
  /** The record's position in the ledger, from 1. */
  readonly place: number | null;
  /** The record, as `run/n`. */
  readonly record: string | null;
  /** The run or stream, if known. */
  readonly run: string | null;
  /** The last possible position, if it is not known exactly. */
  readonly until: number | null;
  /** The problem, in words. */
  readonly what: string;
}

/** The local copies of the last checkpoint that the ledger's own key signed; null if they were not read. */
export interface LedgerKept {
  /** The number of copies. */
  readonly copies: number;
  /** The number of records that the largest one covers. */
  readonly size: number;
  /** The number of copies that are not checkpoints that the ledger's key signed. */
  readonly unreadable: number;
}

/** The keys that signed checkpoints. */
export interface LedgerKeys {
  /** Whether each of the given keys signed a checkpoint. */
  readonly given: readonly boolean[];
  /** Whether the ledger's own key signed the last signed checkpoint; null without such a key or checkpoint. */
  readonly own: boolean | null;
}

/** Runs with lines in other logs, which were not checked. */
export interface LedgerElsewhere {
  /** The log of the first of them. */
  readonly file: string;
  /** The number of runs. */
  readonly runs: number;
}

/** The first of these lines. */
export interface LedgerFirstUnknown {
  /** Its number, from 1. */
  readonly line: number;
  readonly run: string;
}

/** The result for the log. */
export interface LedgerLog {
  /** Runs with lines in other logs, which were not checked. */
  readonly elsewhere: LedgerElsewhere | null;
  /** The log as shown to the user. */
  readonly file: string;
  /** The first of these lines. */
  readonly first_unknown: LedgerFirstUnknown | null;
  /** The number of lines that belong to runs of this ledger. */
  readonly ours: number;
  /** The number of lines that name runs unknown to this ledger. */
  readonly unknown: number;
  /** The number of lines that cannot be parsed, or that follow up on a run without naming it. */
  readonly unreadable: number;
}

/** Runs that are not decided. */
export interface LedgerOpen {
  readonly count: number;
  /** Some of them, first opened first. */
  readonly runs: readonly string[];
}

/** A rollback that a person accepted. */
export interface LedgerRollback {
  readonly by: string;
  readonly reason: string;
  /** Its record in the ledger's stream. */
  readonly record: string;
}

/** The signatures over records. */
export interface LedgerSignatures {
  /** The number of signatures. */
  readonly count: number;
  /** The number of signed runs. */
  readonly runs: number;
  /** The number of signed runs whose keys only their own first record names. */
  readonly self_vouched: number;
  /** The number of unsigned records in the ledger's own stream, as long as no key is known that should have signed them. */
  readonly unsigned_own: number;
  /** The number of unsigned records other than checkpoints. */
  readonly unsigned_records: number;
}

/** The result for the witness. */
export interface LedgerWitness {
  /** The number of checkpoints of this ledger that it has. */
  readonly checkpoints: number;
  /** Its file as shown to the user. */
  readonly file: string | null;
  /** The size of the largest one. */
  readonly size: number;
  /** The number of parts that are not signed notes, such as an incomplete one. */
  readonly torn: number;
}

/** A verification of the ledger, as `quorate ledger verify --format json` prints it */
export interface Verification {
  /** The keys of the ledger that follow without a voucher. */
  readonly accepted_keys: readonly LedgerAcceptedKey[];
  /** The checkpoints of the ledger. */
  readonly checkpoints: LedgerCheckpoints;
  /** The last checkpoint that the HTTP witness signed. */
  readonly cosigned: LedgerCosigned | null;
  /** Divergences, ordered by position in the ledger; at most a hundred. */
  readonly divergences: readonly LedgerDivergence[];
  /** The number of verified records with an erased body. */
  readonly erased: number;
  /** The number of divergences. */
  readonly found: number;
  /** Whether nothing differs. */
  readonly holds: boolean;
  /** The local copies of the last checkpoint that the ledger's own key signed; null if they were not read. */
  readonly kept: LedgerKept | null;
  /** The keys that signed checkpoints. */
  readonly keys: LedgerKeys;
  /** The number of records that the last signed checkpoint kept on this machine covers. */
  readonly last_signed: number | null;
  /** The ledger's address as shown to the user. */
  readonly ledger: string;
  /** The result for the log. */
  readonly log: LedgerLog | null;
  /** Runs that are not decided. */
  readonly open: LedgerOpen;
  /** The ledger's origin; null before its first checkpoint. */
  readonly origin: string | null;
  /** The number of verified records. */
  readonly records: number;
  /** Rollbacks that a person accepted, oldest first. */
  readonly rollbacks: readonly LedgerRollback[];
  /** The root over them, in hexadecimal digits. */
  readonly root: string | null;
  readonly schema: "quorate.verify/v1";
  /** The signatures over records. */
  readonly signatures: LedgerSignatures;
  /** The number of records before the start of the verification. */
  readonly since: number;
  /** The number of records of the ledger; null if a record is missing. */
  readonly size: number | null;
  /** The number of their runs and other streams. */
  readonly streams: number;
  /** The number of texts that they name. */
  readonly texts: number;
  /** The result for the witness. */
  readonly witness: LedgerWitness | null;
}
