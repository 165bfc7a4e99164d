// Calls of the program, and what becomes of its answers. `crates/quorate-cli/tests/it/packages/npm.rs` runs this where the
// package is installed; QUORATE_EXAMPLES names the folder with the examples.

import assert from "node:assert/strict";
import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";

import { convene, ProgramError, program, QuorateError, review, runs, verify } from "quorate";

let place;

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "quorate-"));
  process.env.XDG_STATE_HOME = join(place, "state");
  delete process.env.QUORATE_PROGRAM;
  cpSync(join(process.env.QUORATE_EXAMPLES, "incident-report.md"), join(place, "draft.md"));
  cpSync(join(process.env.QUORATE_EXAMPLES, "launch-post.md"), join(place, "blocked.md"));
});

afterEach(() => rmSync(place, { recursive: true, force: true }));

// Has a shell script answer for the program; returns the file with the arguments that it was given, one a line.
function fake(script) {
  const path = join(place, "fake-quorate");
  const given = join(place, "given");
  writeFileSync(path, `#!/bin/sh\nprintf '%s\\n' "$@" > '${given}'\n${script}\n`);
  chmodSync(path, 0o755);
  process.env.QUORATE_PROGRAM = path;
  return given;
}

const refused = (code, exit) => (error) => {
  assert.ok(error instanceof QuorateError, error);
  assert.equal(error.code, code);
  if (exit !== undefined) assert.equal(error.exit, exit);
  return true;
};

test("a review has a verdict, a run and findings", async () => {
  const ships = await review("draft.md", { cwd: place });
  assert.equal(ships.verdict, "SHIP");
  const blocked = await review("blocked.md", { cwd: place, executor: "rubric", policy: "strict" });
  assert.notEqual(blocked.verdict, "SHIP");
  assert.ok(readFileSync(join(place, "blocked.md"), "utf8").includes(blocked.findings[0].quote));
  const listed = await runs({ cwd: place });
  assert.deepEqual(listed.runs.map(({ run }) => run).sort(), [ships.run, blocked.run].sort());
  assert.equal((await review({ text: "A text." }, { cwd: place })).artifact, "-");
});

test("a ledger that was changed does not hold", async () => {
  await review("draft.md", { cwd: place });
  assert.equal((await verify({ cwd: place })).holds, true);
  const log = join(place, ".quorate", "council_log.jsonl");
  writeFileSync(log, readFileSync(log, "utf8").replace("SHIP", "HOLD"));
  const changed = await verify({ cwd: place });
  assert.equal(changed.holds, false);
  assert.ok(changed.divergences[0].what);
});

test("an assembly is convened", async () => {
  const board = join(place, "board");
  cpSync(join(process.env.QUORATE_EXAMPLES, "release-board"), board, { recursive: true });
  const vote = (proposal) =>
    convene("assemblies/release-board", { cwd: board, proposal: `proposals/${proposal}.md`, proposalClass: "release" });
  assert.equal((await vote("calendar-feed")).outcome.result, "pass");
  const failed = await vote("partner-access");
  assert.equal(failed.outcome.result, "fail");
  assert.equal(failed.decision.no, 1);
});

test("a refusal has its code", async () => {
  await assert.rejects(runs({ cwd: place }), refused("quorate:run_unknown", 4));
  await assert.rejects(review("absent.md", { cwd: place }), refused("quorate:artifact_missing", 4));
  await assert.rejects(review("draft.md", { cwd: place, executor: "nobody" }), refused("quorate:kind_unknown", 5));
  await assert.rejects(review("draft.md", { cwd: place, timeout: "soon" }), refused("quorate:usage", 64));
  for (const name of ["-", "*.md", "{draft,blocked}.md"]) {
    await assert.rejects(review(name, { cwd: place }), refused("quorate:artifact_missing"));
  }
  await assert.rejects(review(7), TypeError);
  await assert.rejects(review("draft.md", { cwd: place, polciy: "strict" }), /polciy/);
});

test("no value is read as an option", async () => {
  const given = fake("exit 70");
  await assert.rejects(review("--trust", { cwd: place, executor: "--trust", madeBy: "-x" }), ProgramError);
  const words = readFileSync(given, "utf8").split("\n");
  assert.ok(!words.slice(0, words.indexOf("--")).includes("--trust"));
  assert.ok(words.includes("--executor=--trust") && words.includes("--made-by=-x"));
});

test("what is no answer is no verdict", async () => {
  for (const [script, code] of [
    ["echo no", "npm:program_failed"],
    ["exit 0", "npm:program_failed"],
    ["echo '{}'", "npm:output_unknown"],
    ["echo '{\"schema\": \"quorate.review/v2\"}'", "npm:output_unknown"],
    ["echo '{\"schema\": \"quorate.review/v1\", \"verdict\": \"APPROVED\"}'", "npm:output_unknown"],
    ["echo '{\"schema\": \"quorate.review/v1\", \"verdict\": \"SHIP\"}'; exit 5", "npm:program_failed"],
    ["echo '{\"diagnostics\": []}'", "npm:output_unknown"],
    ["echo died >&2; kill -9 $$", "npm:program_failed"],
  ]) {
    fake(script);
    await assert.rejects(review("draft.md", { cwd: place }), refused(code), script);
  }
  process.env.QUORATE_PROGRAM = join(place, "absent");
  assert.throws(() => program(), refused("npm:program_missing"));
  await assert.rejects(review("draft.md", { cwd: place }), refused("npm:program_missing"));
});

test("a signal ends the program", async () => {
  const ended = join(place, "ended");
  const began = join(place, "began");
  fake(`trap 'echo > ${ended}; exit 130' TERM\necho > ${began}\nwhile :; do sleep 0.05; done`);
  const controller = new AbortController();
  const reviewed = review("draft.md", { cwd: place, signal: controller.signal });
  const timer = setInterval(() => existsSync(began) && controller.abort(), 10);
  await assert.rejects(reviewed, { name: "AbortError" });
  clearInterval(timer);
  assert.ok(existsSync(ended));
});
