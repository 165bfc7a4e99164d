// What a report and the pages about proofs show of a check. Texts are set as text alone.

const find = (selector) => document.querySelector(selector);
const stand = find("#stand");
const keyInput = find("#key");
let checked = null;

function say(style, text, flaws = []) {
  stand.className = `stand ${style}`;
  stand.textContent = text;
  const list = find("#flaws");
  list.hidden = flaws.length === 0;
  list.replaceChildren(
    ...flaws.map((flaw) => {
      const item = document.createElement("li");
      item.textContent = flaw;
      return item;
    }),
  );
}

// Without a key from the reader nothing is vouched for: a forger's file has a forger's key.
async function judge() {
  if (!checked) return;
  const { proven, flaws, says } = checked;
  const given = keyInput.value.trim();
  find("#key-line").hidden = flaws.length > 0;
  if (flaws.length > 0) {
    say("bad", "■ Changed: this report shows something else than its proof says.", flaws);
  } else if (given === "") {
    say("none", `▲ Key not given: ${says}, but whose key signed it is not known. Enter the ledger's key.`);
  } else if (await isVouched(proven, given)) {
    say("good", `● Valid: ${says}, and the key that you entered signed it.`);
  } else {
    say("bad", "■ Signed by another key than the one that you entered.");
  }
}

// Runs a check and shows its result. Any other failure is a bug of this script.
async function check(work) {
  checked = null;
  say("none", "Checking…");
  try {
    if (!(await canCheck())) {
      say("none", "▲ Not checked: this browser has no Ed25519. `quorate ledger check-proof` checks the file.");
      return;
    }
    checked = await work();
    await judge();
  } catch (error) {
    if (!(error instanceof Flaw || error instanceof Unreadable)) throw error;
    say("bad", `■ Proves nothing: ${error.message}.`);
  }
}

// How texts are made of what is in a record; pages/at.rs has the same list.
const plain = (text) => text.replaceAll("_", " ");
const fixed = (number) => (number % 1 === 0.25 ? number - 0.05 : number).toFixed(1);
const mean = (scores) => scores.reduce((sum, score) => sum + score, 0) / scores.length;
const FORMS = {
  stance: ({ verdict, would_block: blocks }) =>
    verdict ? verdict.toLowerCase() + (blocks ? ", blocks" : "") : blocks ? "blocks" : "passes",
  score: ({ score, scores }) => fixed(score ?? mean(Object.values(scores))),
  place: ({ line, column }) =>
    isCount(line) ? `line ${line}${isCount(column) ? `, character ${column}` : ""}` : "not in the text",
  ratio: ({ yes, total }) => `${yes} of ${total}`,
  effect: ({ decides, emitted, node: at }) =>
    decides ?? (Number.isInteger(emitted) ? `${emitted} emitted` : (at ?? "")),
  locked: ({ what, trait }) => (what ?? "") + (isText(trait) ? ` (${trait})` : ""),
  list: (texts) => (Array.isArray(texts) ? texts.join(", ") : "all"),
  upper: (text) => text.toUpperCase(),
  plain,
  minute: (text) => `${text.slice(0, 10)} ${text.slice(11, 16)}`,
  number: (number) => number.toLocaleString("en-US"),
  "yes-no": (yes) => (yes ? "yes" : "no"),
  text: (value) => (isText(value) ? value : canonical(value)),
};

// The value at `25/findings/0/issue`, or at `0@run` of a record's head.
function valueAt(records, place) {
  const [, n, rest] = /^(\d+)(.*)$/s.exec(place) ?? [];
  const record = records.find((one) => one.n === Number(n));
  if (rest?.startsWith("@")) return record?.[rest.slice(1)];
  const parts = (rest ?? "").split("/").slice(1);
  return parts.reduce((value, part) => {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    return value !== null && typeof value === "object" && Object.hasOwn(value, key) ? value[key] : undefined;
  }, record?.data ?? undefined);
}

// Whether what is shown is the text: the page may write each of its characters as `[U+202E]`, and must write those that
// change how others are shown.
const HIDDEN = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f]/;
function isShown(shown, text) {
  let at = 0;
  for (const letter of text.replace(/\r\n?/g, "\n")) {
    const code = `[U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`;
    if (shown.startsWith(letter, at) && !HIDDEN.test(letter)) at += letter.length;
    else if (shown.startsWith(code, at)) at += code.length;
    else return false;
  }
  return at === shown.length;
}

const short = (text) => (text.length > 60 ? `${text.slice(0, 60)}…` : text);

function factFlaw(records, element) {
  const { at, as = "text" } = element.dataset;
  const said = `record ${at}`;
  let expected;
  try {
    expected = FORMS[as](valueAt(records, at));
  } catch {
    return `“${short(element.textContent)}” is not in ${said}`;
  }
  if (typeof expected === "string" && isShown(element.textContent, expected)) return null;
  return `“${short(element.textContent)}” is shown, and ${said} says “${short(String(expected))}”`;
}

// Shows the content of a proof from its records, and uses nothing of the surrounding page.
function showProven({ origin, size, root, keys, records }) {
  const list = find("#proven");
  if (!list) return;
  const decisions = records.filter((record) => ["outcome", "override"].includes(record.kind));
  const words = decisions.map(({ kind, data }) => {
    const word = data?.verdict ?? data?.decision?.result ?? "its data is left out";
    return [kind === "override" ? `${data?.by ?? "a person"} decided` : "outcome", String(word).toUpperCase()];
  });
  const facts = [
    ["Run", records[0].run],
    ...words,
    ["Records", `${records.length}, from ${records[0].at} to ${records.at(-1).at}`],
    ["Ledger", origin],
    ["Its records at that time", String(size)],
    ["Root", hex(root)],
    ...keys.map((key) => ["Key", key.text]),
  ];
  list.replaceChildren(
    ...facts.map(([name, value]) => {
      const [row, term, text] = ["div", "dt", "dd"].map((tag) => document.createElement(tag));
      [term.textContent, text.textContent] = [name, value];
      row.append(term, text);
      return row;
    }),
  );
}

// How words are marked; pages/wording.rs has the same list.
const MARKS = { "good ●": "SHIP PASS DONE", "fair ◆": "REVISE", "bad ■": "HOLD FAIL REFUSED", "open ○": "OPEN" };

// The requirements on the whole page, beyond single true facts: it must show the last decision in its heading and every
// decision of a person, all of it visibly.
function shapeFlaws(records, decided) {
  const flaws = [];
  const parts = [...document.body.children].map(({ localName }) => localName).filter((name) => name !== "script");
  if (parts.join() !== "main,footer") flaws.push("the page has parts that no report has");
  if (document.querySelector("main [hidden]:not(#flaws, #key-line)")) flaws.push("a part of the page is hidden");
  const outcome = records.find(({ n }) => String(n) === decided)?.data;
  const place = isText(outcome?.verdict) ? "verdict" : isText(outcome?.decision?.result) ? "decision/result" : "";
  const expected = place === "" ? undefined : `${decided}/${place}`;
  const shown = document.querySelectorAll("#verdict");
  if (shown.length !== 1 || !shown[0].matches("main > h1 > .mark > #verdict")) {
    flaws.push("the heading is not a report's");
  } else if (shown[0].dataset.at !== expected) {
    flaws.push("the heading shows something else than the decision");
  }
  for (const mark of document.querySelectorAll("h1 .mark, .override .mark")) {
    const [shape, word] = mark.textContent.trim().split(/\s+/);
    const known = Object.keys(MARKS).find((style) => MARKS[style].split(" ").includes(word)) ?? "none ▲";
    if (mark.className !== `mark ${known.slice(0, -2)}` || !known.endsWith(shape)) flaws.push("a word is marked as another one");
  }
  const lines = [...document.querySelectorAll("main > .override")];
  const decisions = records.filter(({ kind }) => kind === "override");
  const isShown = ({ n }) => lines.some((line) => line.querySelector(`[data-at="${n}/verdict"]`));
  if (!decisions.every(isShown) || lines.length !== decisions.length) flaws.push("a person's decision is not shown");
  return flaws;
}

// The texts are those that the run was about, and their lines are shown.
async function textFlaws(records) {
  const inputs = records[0].data?.inputs;
  const flaws = [];
  for (const block of document.querySelectorAll("script.text")) {
    const input = inputs?.[Number(block.dataset.input)];
    const bytes = unbase64(block.textContent, null, "a text");
    if (input?.sha256 !== hex(await sha256(bytes))) {
      flaws.push(`the embedded text “${input?.name ?? ""}” is not the one that the run was about`);
      continue;
    }
    const lines = textOf(bytes).split("\n").map((line) => line.replace(/\r+$/, ""));
    if (lines.at(-1) === "") lines.pop();
    const shown = document.querySelectorAll(`[data-text="${CSS.escape(block.dataset.input)}"] > li > .code`);
    const other = lines.findIndex((line, at) => !shown[at] || !isShown(shown[at].textContent, line));
    if (other >= 0) flaws.push(`line ${other + 1} of “${input.name}” is shown otherwise than it was`);
    if (other < 0 && shown.length > lines.length) flaws.push(`“${input.name}” has fewer lines than are shown`);
  }
  const blocks = document.querySelectorAll("script.text").length;
  if (document.querySelectorAll("[data-text]").length !== blocks) flaws.push("a text is shown that is not embedded");
  return flaws;
}

async function checkReport(block) {
  const proven = await checkProof(textOf(unbase64(block.textContent, null, "the proof")));
  const { records } = proven;
  const flaws = await textFlaws(records);
  const main = find("main");
  const last = records.findLast((record) => record.kind === "outcome");
  const taken = records.findLast((record) => record.kind === "run.intent");
  const decided = last && last.n > (taken?.n ?? -1) ? String(last.n) : "";
  if (main.dataset.record !== decided) flaws.push("the decision is not the run's last one");
  flaws.push(...shapeFlaws(records, decided));
  showProven(proven);
  const facts = document.querySelectorAll("[data-at]");
  if (facts.length !== Number(main.dataset.facts)) flaws.push("facts were added or removed");
  for (const element of facts) flaws.push(...[factFlaw(records, element)].filter(Boolean));
  return { proven, flaws, says: "this report agrees with its proof" };
}

keyInput.addEventListener("input", judge);
const embeddedProof = find("script#proof");
if (embeddedProof) await check(() => checkReport(embeddedProof));
