// The types of the functions; those of their results are in models.d.ts.

import type { Convening, Review, Runs, Verification } from "./models.js";

export type * from "./models.js";

/** What every call takes. */
export interface CallOptions {
  /** The directory that the program runs in. */
  cwd?: string;
  /** Variables beside those of this process. */
  env?: { [name: string]: string };
  /** Ends the program, and with it its members. */
  signal?: AbortSignal;
  /** Trusts, for this call, what workspace files would run or send. */
  trust?: boolean;
  /** The council's file. */
  config?: string;
  /** The ledger's file. */
  ledger?: string;
}

/** Who answers, and the limits of a run. */
export interface AnswerOptions extends CallOptions {
  executor?: string;
  model?: string;
  /** The operator that produced what is judged. */
  madeBy?: string;
  maxCalls?: number;
  maxTokens?: number;
  /** For example "5 USD". */
  maxMoney?: string;
  /** The timeout of each member, for example "90s". */
  timeout?: string;
}

export interface ReviewOptions extends AnswerOptions {
  policy?: "seed" | "strict";
  /** The artifact's type. */
  type?: string;
  tier?: 1 | 2 | 3;
}

export interface ConveneOptions extends AnswerOptions {
  /** Voting: the proposal's file. */
  proposal?: string;
  /** Voting: the proposal's class. */
  proposalClass?: string;
  /** Peer: the topic's file. */
  topic?: string;
  /** Hierarchy: the file of the matter to assess. */
  request?: string;
  /** Advisory: the conversation's file. */
  conversation?: string;
  phase?: string;
  trigger?: string;
  rounds?: number;
  /** The workspace in which refs resolve. */
  root?: string;
}

export interface RunsOptions extends CallOptions {
  limit?: number;
  verdict?: string;
  type?: string;
  mode?: string;
  producer?: string;
  since?: string;
}

export interface VerifyOptions extends CallOptions {
  /** Keys that have to have signed a checkpoint: keys, or files of these. */
  keys?: readonly string[];
  witness?: string;
  since?: string;
}

/** A refusal or a warning; `quorate explain CODE` has a page for each code. */
export interface Diagnostic {
  readonly code: string;
  readonly severity: string;
  readonly message: string;
  readonly help: string | null;
  readonly file: string | null;
  readonly line: number | null;
  readonly column: number | null;
  readonly path: string | null;
}

/** The program refused. */
export class QuorateError extends Error {
  /** The code of the first refusal, such as `quorate:artifact_missing`. */
  readonly code: string;
  /** The program's exit code; -1 where it has none. */
  readonly exit: number;
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * The program is missing, ended by itself, or printed what this package cannot read: `npm:program_missing`,
 * `npm:program_failed` or `npm:output_unknown`.
 */
export class ProgramError extends QuorateError {}

/** The path of the program: what `QUORATE_PROGRAM` names, else the one of this platform's package. */
export function program(): string;

/** Has a council review a file, or a text. Every verdict is a result. */
export function review(subject: string | { text: string }, options?: ReviewOptions): Promise<Review>;

/** Convenes an assembly on the subject of its mode. Every outcome is a result. */
export function convene(assembly: string, options?: ConveneOptions): Promise<Convening>;

/** The runs of the ledger: open ones first, in each part the newest first. */
export function runs(options?: RunsOptions): Promise<Runs>;

/** Holds the ledger against its hashes, signatures, checkpoints, witness and log. */
export function verify(options?: VerifyOptions): Promise<Verification>;
