// What the types allow; `crates/quorate-cli/tests/it/packages/npm.rs` has TypeScript check it.

import { convene, type Finding, ProgramError, QuorateError, type Review, review, runs, verify } from "quorate";

export async function typed(signal: AbortSignal): Promise<string> {
  const decided: Review = await review("draft.md", { executor: "rubric", policy: "strict", signal });
  const verdict: "SHIP" | "REVISE" | "HOLD" | "INCOMPLETE" | null = decided.verdict;
  const findings: readonly Finding[] = decided.findings;
  const line: number | null | undefined = findings[0]?.line;
  const voted = await convene("board", { proposal: "proposal.md" });
  const listed = (await runs({ limit: 5 })).runs.map((run) => run.run);
  const holds: boolean = (await verify({ keys: ["ledger.pub"] })).holds;
  try {
    await review({ text: "A text." });
  } catch (error) {
    if (error instanceof ProgramError || error instanceof QuorateError) return error.code;
  }
  return `${verdict} ${line} ${voted.outcome.result} ${listed.join()} ${holds}`;
}

// @ts-expect-error: a policy that does not exist
void review("draft.md", { policy: "lax" });
// @ts-expect-error: a field that does not exist
void review("draft.md").then((decided) => decided.verdikt);
// @ts-expect-error: results are read only
void review("draft.md").then((decided) => (decided.verdict = "SHIP"));
