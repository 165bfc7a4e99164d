// What commands print as JSON.
//
// Made from the schemas of `quorate schema`; CONTRIBUTING.md says how.

/** Why an invocation has no answer. */
export interface Failure {
  /** The beginning of the text that the member gave instead of an answer. */
  readonly excerpt?: string;
  /** The HTTP status of the last response, if it is an error. */
  readonly http?: number;
  /** The status of the invocation: `timed_out`, `failed`, `schema_failed`, `over_budget`, `cancelled`, `late` or `erased`. */
  readonly kind: string;
  /** One sentence; never empty. */
  readonly message: string;
  /** Calls that repeat one that failed. Re-prompts do not count. */
  readonly retries: number;
}

/** A sample without an answer. */
export interface Missing {
  /** The number of the sample, counted from 1. */
  readonly sample: number;
  /** The reason. */
  readonly why: string;
}

/** How its samples differ, if it was asked several times. */
export interface Samples {
  /** How many of them agree with the answer that counts, in the fields that decide; 0 where no answer counts. */
  readonly agree: number;
  /** How many of them have an answer that fits. */
  readonly answered: number;
  /** How many samples were asked for. */
  readonly asked: number;
  /** The number of the sample whose answer counts, counted from 1. */
  readonly chosen?: number;
  /** The samples without an answer. */
  readonly missing?: readonly Missing[];
  /** For each typed field, how many samples gave each value. */
  readonly spread: { readonly [key: string]: unknown };
}

/** A sum of US dollars, exact to a billionth. */
export interface Money {
  /** A decimal number */
  readonly amount: string;
  readonly currency: "USD";
}

/** What an invocation cost. */
export interface Spent {
  /** Calls made, re-prompts and retries included. */
  readonly calls: number;
  /** The price, if it is known. */
  readonly money?: Money;
  /** Milliseconds from question to end. */
  readonly ms: number;
  /** Of `tokens_in`, those read from a cache. */
  readonly tokens_cached?: number;
  /** Tokens of the prompts, those of a cache included. */
  readonly tokens_in?: number;
  /** Tokens that the models wrote, reasoning included. */
  readonly tokens_out?: number;
  /** Of `tokens_out`, those of reasoning. */
  readonly tokens_reasoning?: number;
  /** Of `tokens_in`, those written to a cache for minutes. */
  readonly tokens_written?: number;
  /** Of `tokens_in`, those written to a cache for an hour or longer. */
  readonly tokens_written_long?: number;
}

/** An executor whose service failed, so that a stand-in was asked. */
export interface Tried {
  /** The executor's name. */
  readonly executor: string;
  /** The HTTP status of its last response, if it is an error. */
  readonly http?: number;
  /** Why it gave no answer. */
  readonly message: string;
}

/** The adjudicator's answer. */
export interface Adjudicator {
  /** The answer as it was given; see `quorate schema answer`. */
  readonly answer: { readonly [key: string]: unknown } | null;
  /** The name of its executor; that of the last question, if a resumed run used another. */
  readonly executor?: string;
  /** The reason for a missing answer, in full. */
  readonly failure?: Failure;
  /** The executor's kind. */
  readonly kind?: string;
  /** The model that answered last; the requested model if no answer names one. */
  readonly model?: string;
  /** The requested model, if another one answered. */
  readonly requested_model?: string;
  /** How its samples differ, if it was asked several times. */
  readonly samples?: Samples;
  /** Calls, known tokens and prices, and the time from each question to its end, added up. */
  readonly spent?: Spent;
  /** The executor that it stands in for, whose service failed. */
  readonly stand_in_for?: string;
  /** `answered`, `timed_out`, …; `not_asked` without an invocation. */
  readonly status: string;
  /** The executors before the stand-in, with the reasons why they gave no answer. */
  readonly tried?: readonly Tried[];
}

/** How an invocation ended. */
export interface Answer {
  /** The answer as it was given; see `quorate schema answer`. */
  readonly answer: { readonly [key: string]: unknown } | null;
  /** The reason for a missing answer, in full. */
  readonly failure?: Failure;
  /** How its samples differ, if it was asked several times. */
  readonly samples?: Samples;
  /** `answered`, `timed_out`, …; `not_asked` without an invocation. */
  readonly status: string;
}

/** A deliberator's part in a review. */
export interface Deliberator {
  /** `round1`, `round2`, `round1_block` or `missing`; empty while the run is undecided. */
  readonly counted: string;
  /** The name of its executor; that of the last question, if a resumed run used another. */
  readonly executor?: string;
  /** Its id in the council. */
  readonly id: string;
  /** The executor's kind. */
  readonly kind?: string;
  /** The model that answered last; the requested model if no answer names one. */
  readonly model?: string;
  /** The requested model, if another one answered. */
  readonly requested_model?: string;
  /** Its first answer. */
  readonly round1: Answer;
  /** Its second answer. */
  readonly round2: Answer;
  /** Calls, known tokens and prices, and the time from each question to its end, added up. */
  readonly spent?: Spent;
  /** The executor that it stands in for, whose service failed. */
  readonly stand_in_for?: string;
  /** The executors before the stand-in, with the reasons why they gave no answer. */
  readonly tried?: readonly Tried[];
  /** Whether it blocks without a single finding whose quote is in the text. */
  readonly ungrounded: boolean;
}

/** A deliberator's finding, as the outcome's record has it. */
export interface Finding {
  /** The deliberator that found it. */
  readonly by: string;
  /** From 1, in characters. */
  readonly column: number | null;
  /** How to mend it. */
  readonly fix: string | null;
  /** Whether the quote stands in the text. */
  readonly grounded: boolean;
  /** What is wrong. */
  readonly issue: string;
  /** From 1; null if the quote is not in the text. */
  readonly line: number | null;
  /** The quoted words. */
  readonly quote: string;
}

/** The latest decision of a person. */
export interface Override {
  /** The person's name. */
  readonly by: string;
  /** The reason, in the person's words. */
  readonly reason: string;
  /** The person's verdict: `SHIP`, `REVISE` or `HOLD`. */
  readonly verdict: string;
}

/** A review, as `quorate review --format json` prints it */
export interface Review {
  /** The adjudicator's answer. */
  readonly adjudicator: Adjudicator;
  /** The artifact: a path, or `-` for standard input. */
  readonly artifact: string;
  /** The type of the text, under which verdicts are remembered. */
  readonly artifact_type: string;
  /** The policy's reason, in one sentence. */
  readonly because: string;
  /** The council's file as shown to the user; null for the built-in one. */
  readonly council: string | null;
  /** In roster order. */
  readonly deliberators: readonly Deliberator[];
  /** Dissenting members, and their points. */
  readonly dissent_summary: string | null;
  /** The names of the executors. */
  readonly executor: string;
  /** The exit code of the command. */
  readonly exit: number;
  /** In the order of the text; those without a line last. */
  readonly findings: readonly Finding[];
  /** The address of the ledger that has the run; null if the caller did not ask for it, or it was removed. */
  readonly ledger: string | null;
  /** The members without an answer. */
  readonly missing: readonly string[];
  /** Whether a model was asked. */
  readonly model_asked: boolean;
  /** Notes. If no model was asked, that note comes first. */
  readonly notes: readonly string[];
  /** The latest decision of a person. */
  readonly override: Override | null;
  /** Whether a member lacks an answer. */
  readonly partial: boolean;
  /** `seed/2`, `strict/1`, or `table/` and a hash of the council's own table. */
  readonly policy: string;
  /** Earlier verdicts that the adjudicator saw. */
  readonly prior_verdicts_consulted: number;
  /** The adjudicator's reasoning, or `because` without one. */
  readonly reasoning: string;
  /** What should change, in the adjudicator's words. */
  readonly revision_brief: string | null;
  /** The run's id in the ledger. */
  readonly run: string;
  /** The version of the JSON. */
  readonly schema: "quorate.review/v1";
  /** The calls of the run, their cost as far as known, and the working time. */
  readonly spent: Spent;
  /** The tier, from 1 (strictest) to 3. */
  readonly tier: number;
  /** The verdict; null while the run is undecided. */
  readonly verdict: "SHIP" | "REVISE" | "HOLD" | "INCOMPLETE" | null;
}

/** The words of a member that decided alone. */
export interface AssemblyContribution {
  /** The quotes that the member gave. */
  readonly evidence: readonly string[];
  /** The member's id. */
  readonly member: string;
  /** The reason that the member gave. */
  readonly rationale: string | null;
  /** `yes` or `no`. */
  readonly vote: string | null;
}

/** The ratio without rounding. */
export interface AssemblyExact {
  /** The weight that the deciding rule counts. */
  readonly total: string;
  /** The weight of yes: `5/2`, or a whole number. */
  readonly yes: string;
}

/** The vote of one member, as the count has it. */
export interface AssemblyVote {
  /** The member's id. */
  readonly member: string;
  /** `yes`, `no`, `abstain`, `missing` or `cancelled`. */
  readonly vote: string | null;
  /** The member's weight, as a fraction. */
  readonly weight: string;
  /** The placeholder for a rationale that touches a locked trait. */
  readonly withheld?: string;
}

/** Voting: the count of the votes. */
export interface AssemblyDecision {
  /** The weights that abstain. */
  readonly abstain: number;
  /** Who decided alone, by a `terminal` rule, and why. */
  readonly contribution?: readonly AssemblyContribution[];
  /** The ratio without rounding. */
  readonly exact: AssemblyExact;
  /** The weights without a vote. */
  readonly missing: number;
  /** The weights that say no. */
  readonly no: number;
  /** Yes by total, rounded. */
  readonly ratio: number;
  /** `pass`, `fail`, `refused` or `incomplete`. */
  readonly result: string;
  /** The rule that decided; null where nothing was decided. */
  readonly rule: string | null;
  /** The proposal in short, and the result in a sentence. */
  readonly text?: string;
  /** How a tie was broken. */
  readonly tie?: string;
  /** Every voter, in roster order. */
  readonly votes: readonly AssemblyVote[];
  /** The weights that say yes. */
  readonly yes: number;
}

/** A piece of guidance. */
export interface AssemblyFragment {
  /** When it stops to hold, RFC 3339. */
  readonly expires: string;
  /** The author of these words. */
  readonly member: string;
  /** How weighty it is. */
  readonly priority: number;
  /** The rule that emitted it. */
  readonly rule: string;
  /** How grave its author found it, 0 to 10. */
  readonly severity: number;
  /** What the author suggests to the agent. */
  readonly text: string;
}

/** A question to a member, and its result. */
export interface AssemblyConsultation {
  /** The answer, as given. */
  readonly answer: unknown;
  /** The name of the executor. */
  readonly executor: string | null;
  /** The reason for a missing answer, in full. */
  readonly failure?: Failure;
  /** Its id in the run's records. */
  readonly invocation: string;
  /** The duration, in milliseconds. */
  readonly ms: number | null;
  /** The probability of each option, if a decision model answered; of a yes-or-no question that of `yes` alone. */
  readonly probabilities?: { readonly [key: string]: unknown };
  /** How its samples differ, if it was asked several times. */
  readonly samples?: Samples;
  /** How it ended. */
  readonly status: string;
}

/** A member and all its questions. */
export interface AssemblyMember {
  /** The last answer, as given. */
  readonly answer: unknown;
  /** All questions in order, if there are several. */
  readonly consultations?: readonly AssemblyConsultation[];
  /** The name of its executor; that of the last question, if a resumed run used another. */
  readonly executor?: string;
  readonly failure?: Failure;
  /** Its id in the manifest. */
  readonly id: string;
  /** The executor's kind. */
  readonly kind?: string;
  /** The reason for a missing answer, if the record has more than the status. */
  readonly message?: string;
  /** The model that answered last; the requested model if no answer names one. */
  readonly model?: string;
  /** The probability of each option of the last answer, if a decision model gave it. */
  readonly probabilities?: { readonly [key: string]: unknown };
  /** The requested model, if another one answered. */
  readonly requested_model?: string;
  /** The title of the role. */
  readonly role: string;
  /** How the samples of the last answer differ, if it was asked several times. */
  readonly samples?: Samples;
  /** Calls, known tokens and prices, and the time from each question to its end, added up. */
  readonly spent?: Spent;
  /** The executor that it stands in for, whose service failed. */
  readonly stand_in_for?: string;
  /** The status of the last question; `not_asked` without one. */
  readonly status: string;
  /** The executors before the stand-in, with the reasons why they gave no answer. */
  readonly tried?: readonly Tried[];
}

/** A message that was delivered. */
export interface AssemblyMessage {
  /** The id of its author. */
  readonly from: string;
  /** The round that it was sent in, from 1. */
  readonly round: number;
  /** The message. */
  readonly text: string;
  /** To whom: members, or `*` for everybody in reach. */
  readonly to: "*" | readonly string[];
}

/** What it passes up. */
export interface AssemblyOutput {
  /** What is wrong. */
  readonly concern: string;
  /** What it rests on. */
  readonly evidence: readonly string[];
  /** How grave it is, 0 to 10. */
  readonly severity: number;
  /** What to do about it. */
  readonly suggestion: string;
}

/** A node of a hierarchy. */
export interface AssemblyNode {
  /** The children that it is made of. */
  readonly from: readonly string[];
  /** The member's id. */
  readonly member: string;
  /** What it passes up. */
  readonly output: AssemblyOutput | null;
  /** To whom it reports. */
  readonly parent: string | null;
  /** The rule that made what it passes up; null for its own answer. */
  readonly rule: string | null;
  /** `passed`, `passed_up` (it gave nothing itself), `silent`, `refused` or `not_asked`. */
  readonly status: string;
}

/** What a member objected to last. */
export interface AssemblyObjection {
  /** Whether another member's message reached its author after it. */
  readonly answered: boolean;
  /** The member's id. */
  readonly member: string;
  /** The round of the objection, from 1. */
  readonly round: number;
  /** Whether its author took it back. */
  readonly takenBack: boolean;
}

/** The outcome, and its reason. */
export interface AssemblyOutcome {
  /** The reason in a sentence, where the result alone does not explain itself. */
  readonly because?: string;
  /** A stable word for the reason, if there is one: `no_voters`, `locked`, `budget_exhausted`, … */
  readonly code?: string;
  /** Peer: what ended the exchange. */
  readonly endedBy?: string;
  /** The kind of the outcome, which follows from the mode. */
  readonly kind: "guidance" | "decision" | "log" | "rollup";
  /** The outcome in one word; null while the run is undecided. */
  readonly result: "pass" | "fail" | "done" | "refused" | "incomplete" | null;
  /** Peer: the number of rounds. */
  readonly rounds?: number;
}

/** Advisory and hierarchy: the severity. */
export interface AssemblyRisk {
  /** `ok`, `watch`, `intervene` or `escalate`, or another label of the manifest. */
  readonly level: "ok" | "watch" | "intervene" | "escalate" | null;
  /** The highest severity, 0 to 10. */
  readonly severity: number | null;
}

/** Hierarchy: the root's report. */
export interface AssemblyRollup {
  /** What is wrong. */
  readonly concern: string;
  /** What it rests on. */
  readonly evidence: readonly string[];
  /** How grave it is, 0 to 10. */
  readonly severity: number;
  /** What to do about it. */
  readonly suggestion: string;
}

/** A rule that was applied. */
export interface AssemblyRule {
  /** Whether it did anything. */
  readonly fired: boolean;
  /** Its id in the manifest. */
  readonly id: string;
  /** Its kind: `quorum`, `terminal`, `aggregate`, … */
  readonly kind: string;
  /** Whose words made it. */
  readonly members: readonly string[];
  /** The node that it was applied at, in a hierarchy. */
  readonly node?: string;
}

/** Something that was refused. */
export interface AssemblyViolation {
  readonly candidate: string;
  /** `assembly_overlay_lock_violation`, `lock_unchecked` or `out_of_reach`. */
  readonly code: string;
  readonly excerpt: string | null;
  /** Which reading of the text hit it. */
  readonly layer: unknown;
  /** Whose words; null where they are the program's. */
  readonly member: string | null;
  /** Whom a message did not reach. */
  readonly to: unknown;
  readonly trait: string | null;
  /** What was checked: `fragment`, `decision`, `rationale`, `message`, `concern`, `evidence`, `suggestion`. */
  readonly what: string | null;
}

/** A convening, as `quorate convene --format json` prints it */
export interface Convening {
  /** The assembly's name. */
  readonly assembly: string;
  /** Voting: the count of the votes. */
  readonly decision?: AssemblyDecision;
  /** The names of the executors. */
  readonly executor: string;
  /** The exit code: 0 pass or done, 1 fail, 2 refused, 3 incomplete or undecided. */
  readonly exit: number;
  /** Advisory: the guidance. */
  readonly fragments?: readonly AssemblyFragment[];
  /** All members with all their questions, in the manifest's display order. */
  readonly members: readonly AssemblyMember[];
  /** Peer: the delivered messages, in order. */
  readonly messages?: readonly AssemblyMessage[];
  /** The members that were asked and gave no output. */
  readonly missing: readonly string[];
  /** The mode. */
  readonly mode: "advisory" | "voting" | "peer" | "hierarchy";
  /** Whether a model was asked. */
  readonly model_asked: boolean;
  /** Hierarchy: every node, in roster order. */
  readonly nodes?: readonly AssemblyNode[];
  /** Notes; first the ones about a missing model and missing members. */
  readonly notes: readonly string[];
  /** Peer: members whose objection stands. */
  readonly objecting?: readonly string[];
  /** Peer: each member's last objection. */
  readonly objections?: readonly AssemblyObjection[];
  /** Advisory: the operators whose prompts the guidance goes into. */
  readonly operators?: readonly string[];
  /** The outcome, and its reason. */
  readonly outcome: AssemblyOutcome;
  /** Whether an asked member gave no output. */
  readonly partial: boolean;
  /** The request to the mode. */
  readonly request: { readonly [key: string]: unknown } | string;
  /** Advisory and hierarchy: the severity. */
  readonly risk?: AssemblyRisk;
  /** Hierarchy: the root's report. */
  readonly rollup?: AssemblyRollup | null;
  /** The applied rules, in order. */
  readonly rules: readonly AssemblyRule[];
  /** The run's id in the ledger. */
  readonly run: string;
  /** The version of the JSON. */
  readonly schema: "quorate.convene/v1";
  /** Advisory and hierarchy: whether to call a human. */
  readonly shouldEscalate?: boolean;
  /** The calls of the run, their cost as far as known, and the working time. */
  readonly spent: Spent;
  /** The subject: a path, or `-`. */
  readonly subject: string;
  /** Peer: outputs of custom rules on the log. */
  readonly synthesis?: { readonly [key: string]: unknown };
  /** Advisory and voting: whether a rule ended the synthesis. */
  readonly terminal?: boolean;
  /** Refused texts, in order. */
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
  /** The runs of the page: open ones first, in each part the newest first */
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
