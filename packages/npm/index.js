// Functions that call the program and read its JSON. All decisions are the program's.

import { spawn } from "node:child_process";
import { lstatSync } from "node:fs";
import { resolve } from "node:path";

import { program as find } from "./program.js";

// How long a program that was told to end has to end its members, in milliseconds, before it is killed.
const GRACE = 5000;

/** The program refused: `code` is the code of its first refusal, `exit` its exit code. */
export class QuorateError extends Error {
  constructor(message, { code, exit = -1, diagnostics = [] }) {
    super(message);
    this.name = new.target.name;
    this.code = code;
    this.exit = exit;
    this.diagnostics = diagnostics;
  }
}

/** The program is missing, ended by itself, or printed what this package cannot read. */
export class ProgramError extends QuorateError {}

export function program() {
  try {
    return find();
  } catch (error) {
    throw new ProgramError(error.message, { code: error.code });
  }
}

const REVIEW = {
  executor: "executor",
  model: "model",
  policy: "policy",
  type: "type",
  tier: "tier",
  madeBy: "made-by",
  maxCalls: "max-calls",
  maxTokens: "max-tokens",
  maxMoney: "max-money",
  timeout: "timeout",
  config: "config",
  ledger: "ledger",
};
const { policy: _policy, type: _type, tier: _tier, ...ANSWERS } = REVIEW;
const CONVENE = {
  ...ANSWERS,
  proposal: "proposal",
  topic: "topic",
  request: "request",
  conversation: "conversation",
  proposalClass: "class",
  phase: "phase",
  trigger: "trigger",
  rounds: "rounds",
  root: "root",
};
const RUNS = {
  limit: "limit",
  verdict: "verdict",
  type: "type",
  mode: "mode",
  producer: "producer",
  since: "since",
  config: "config",
  ledger: "ledger",
};
const VERIFY = { witness: "witness", since: "since", config: "config", ledger: "ledger" };

/** Has a council review a file, or a text: `review("draft.md")`, `review({ text: "…" })`. */
export async function review(subject, options = {}) {
  const isText = typeof subject === "object" && subject !== null && typeof subject.text === "string";
  if (!isText && typeof subject !== "string") {
    throw new TypeError("review() takes a path or { text }");
  }
  const name = isText ? "-" : oneFile(subject, options.cwd);
  const words = ["review", ...flags(REVIEW, options), "--", name];
  const answer = await ask(words, options, isText ? subject.text : undefined);
  const verdicts = ["SHIP", "REVISE", "HOLD", "INCOMPLETE", null];
  return read(answer, "quorate.review/v1", 3, (it) => verdicts.includes(it.verdict));
}

/** Convenes an assembly on the subject of its mode. */
export async function convene(assembly, options = {}) {
  const answer = await ask(["convene", ...flags(CONVENE, options), "--", `${assembly}`], options);
  const results = ["pass", "fail", "done", "refused", "incomplete", null];
  return read(answer, "quorate.convene/v1", 3, (it) => results.includes(it.outcome?.result));
}

/** The runs of the ledger. */
export async function runs(options = {}) {
  const answer = await ask(["runs", ...flags(RUNS, options)], options);
  return read(answer, "quorate.runs/v1", 0, (it) => Array.isArray(it.runs));
}

/** Holds the ledger against its hashes, signatures, checkpoints, witness and log. */
export async function verify(options = {}) {
  const keys = (options.keys ?? []).map((key) => `--key=${key}`);
  const answer = await ask(["ledger", "verify", ...flags(VERIFY, options), ...keys], options);
  return read(answer, "quorate.verify/v1", 1, (it) => it.holds === (answer.exit === 0));
}

// Options as `--name=value`, so that no value is read as another option. An option that is unknown is a slip.
function flags(known, { trust = false, cwd, env, signal, keys, ...options }) {
  const given = Object.entries(options).filter(([, value]) => value !== undefined && value !== null);
  for (const [name] of given) {
    if (!Object.hasOwn(known, name)) {
      throw new TypeError(`there is no option ${name}`);
    }
  }
  const named = given.map(([name, value]) => `--${known[name]}=${value}`);
  return ["--format=json", "--quiet", ...(trust ? ["--trust"] : []), ...named];
}

// A path that the program takes for one file: not for standard input, and not for a pattern of several.
function oneFile(path, cwd = ".") {
  const exists = () => lstatSync(resolve(cwd, path), { throwIfNoEntry: false }) !== undefined;
  if (path === "-" || (/[*?[{]/.test(path) && !exists())) {
    const code = "quorate:artifact_missing";
    throw new QuorateError(`${code}: there is no file ${path}`, { code, exit: 4 });
  }
  return path;
}

// Runs the program to its end. An aborted signal ends it, and with it its members.
function ask(words, { cwd, env, signal }, text) {
  return new Promise((done, fail) => {
    signal?.throwIfAborted();
    const stdin = text === undefined ? "ignore" : "pipe";
    const child = spawn(program(), words, {
      cwd,
      env: env === undefined ? process.env : { ...process.env, ...env },
      stdio: [stdin, "pipe", "pipe"],
    });
    const output = [];
    const errors = [];
    let killer;
    const abort = () => {
      child.kill("SIGTERM");
      killer = setTimeout(() => child.kill("SIGKILL"), GRACE);
    };
    signal?.addEventListener("abort", abort, { once: true });
    const settled = () => {
      clearTimeout(killer);
      signal?.removeEventListener("abort", abort);
    };
    child.stdout.on("data", (chunk) => output.push(chunk));
    child.stderr.on("data", (chunk) => errors.push(chunk));
    child.on("error", (error) => {
      settled();
      fail(new ProgramError(`cannot start quorate: ${error.message}`, { code: "npm:program_failed" }));
    });
    child.on("close", (exit) => {
      settled();
      if (signal?.aborted) {
        fail(signal.reason);
        return;
      }
      done({ exit: exit ?? -1, output: `${Buffer.concat(output)}`, errors: `${Buffer.concat(errors)}` });
    });
    // The program may end before it has read everything.
    child.stdin?.on("error", () => {});
    child.stdin?.end(text);
  });
}

// What the program printed, if it ended with an exit code that goes with a result; else what it refused is thrown.
function read({ exit, output, errors }, schema, most, fits) {
  let value;
  try {
    value = JSON.parse(output);
  } catch {
    value = undefined;
  }
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  if (isObject && value.schema === undefined && Array.isArray(value.diagnostics)) {
    const refusal = value.diagnostics.find((one) => one?.severity === "refusal" && typeof one.code === "string");
    if (refusal !== undefined) {
      const help = refusal.help ? ` (${refusal.help})` : "";
      const message = `${refusal.code}: ${refusal.message}${help}`;
      throw new QuorateError(message, { code: refusal.code, exit, diagnostics: value.diagnostics });
    }
  }
  if (!isObject || exit < 0 || exit > most) {
    const said = errors.trim().slice(-2000) || "it said nothing";
    if (exit === 64) {
      throw new QuorateError(said, { code: "quorate:usage", exit });
    }
    throw new ProgramError(`quorate ended with ${exit}: ${said}`, { code: "npm:program_failed", exit });
  }
  if (value.schema !== schema || !fits(value)) {
    const message = `the program printed JSON that this package does not know: ${value.schema ?? "without a schema"}`;
    throw new ProgramError(message, { code: "npm:output_unknown", exit });
  }
  return value;
}
