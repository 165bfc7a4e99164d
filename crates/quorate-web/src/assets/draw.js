// Draws a run from the verified records of a proof, and from nothing else. A text of a record is set as text alone.

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

const ifThere = (kind, ...children) => children.some(isThere) && h(kind, children);
const section = (title, ...children) => children.some(isThere) && h("section", h("h2", title), children);
const details = (summary, ...children) => h("details", h("summary", summary), children);
function facts(pairs) {
  const there = pairs.filter(([, value]) => isThere(value));
  return there.length > 0 && h("dl.facts", there.map(([name, value]) => h("div", h("dt", name), h("dd", value))));
}

// A table without its empty columns. That of a heading with `#` has numbers.
function table(heads, rows) {
  if (rows.length === 0) return null;
  const columns = [...heads.keys()].filter((at) => rows.some((row) => isThere(row[at])));
  const cell = (kind, scope, at, text) => {
    const made = h(heads[at].startsWith("#") ? `${kind}.number` : kind, text);
    return scope ? set(made, { scope }) : made;
  };
  const head = columns.map((at) => cell("th", "col", at, heads[at].replace("#", "")));
  const cells = (row) => columns.map((at) => cell(at > 0 ? "td" : "th", at > 0 ? "" : "row", at, row[at]));
  const body = rows.map((row) => h("tr", cells(row)));
  const frame = h("div.scroll", h("table", h("thead", h("tr", head)), h("tbody", body)));
  return set(frame, { tabindex: "0", role: "region", "aria-label": heads.join(", ").replaceAll("#", "") });
}

// Words; pages/wording.rs has the same marks.
const MARKS = { "good ●": "SHIP PASS DONE", "fair ◆": "REVISE", "bad ■": "HOLD FAIL REFUSED", "open ○": "OPEN" };
const plain = (text) => text.replace(/_|(?=[A-Z])/g, " ").toLowerCase();
const isNumber = (value) => typeof value === "number";
const listed = (values) => (isList(values) ? values.join(", ") : values);
const minute = (text) => `${text.slice(0, 10)} ${text.slice(11, 16)} UTC`;
const isObjecting = (answer) => answer.would_block === true;

function mark(said) {
  const word = said.toUpperCase();
  const style = Object.keys(MARKS).find((style) => MARKS[style].split(" ").includes(word)) ?? "none ▲";
  const shape = set(h("span", style.slice(-1)), { "aria-hidden": "true" });
  return h(`span.mark.${style.slice(0, -2)}`, shape, " ", word);
}

// Any value of a record.
function said(value) {
  if (isList(value)) return h("ul", value.map((item) => h("li", said(item))));
  if (isObject(value)) return facts(Object.entries(value).map(([name, item]) => [plain(name), said(item)]));
  return h("div.prose", isText(value) ? value : canonical(value));
}

// Reads the records of one run. A run that was taken up again after its outcome is open. If an invocation was asked twice, its
// last answer counts.
function runOf(records) {
  const isWhole = records.every(({ n, run }, at) => n === at && run === records[0].run);
  need(isWhole && records[0].kind === "run.opened", "it is not the proof of a whole run");
  const all = (kind) => records.filter((record) => record.kind === kind);
  const data = (kind) => all(kind).flatMap((record) => record.data ?? []);
  const isDecision = ({ kind }) => ["outcome", "override"].includes(kind);
  need(records.every((record) => record.data || !isDecision(record)), "the data of a decision is left out");
  const opened = records[0].data ?? data("run.ended").at(-1)?.opened ?? null;
  need(opened || records.every((record) => !record.data || isDecision(record)), "the data of its first record is left out");
  const [last, taken] = ["outcome", "run.intent"].map((kind) => all(kind).at(-1));
  const outcome = last && last.n > (taken?.n ?? -1) ? last.data : {};
  const asked = new Map(data("consultation").map((one) => [one.invocation, one]));
  return {
    id: records[0].run,
    at: records[0].at,
    opened,
    outcome,
    word: String(outcome.verdict ?? outcome.decision?.result ?? "open").toUpperCase(),
    overrides: data("override"),
    violations: data("violation"),
    rule: data("rule").at(-1) ?? {},
    asked: [...asked.values()],
    hasEnded: all("run.ended").length > 0,
    leftOut: records.filter((record) => record.n > 0 && !record.data),
  };
}

// The outcome and the last decision of a person, in a few words.
function gist({ word, overrides }) {
  const last = overrides.at(-1);
  return `these records say ${word}${last ? `, and that ${last.by} decided ${last.verdict}` : ""}`;
}

// The reason of the outcome in one line.
function answer({ word, opened, outcome }) {
  const { deliberators = [], missing = [], because, decision, risk } = outcome;
  if (decision) {
    const { threshold } = opened?.setup?.rules?.find(({ id }) => id === decision.rule)?.params ?? {};
    const needs = isThere(threshold) ? `, needs ${threshold}` : "";
    const by = decision.rule ? ` (rule ${decision.rule})` : "";
    return `Yes: ${decision.exact?.yes} of ${decision.exact?.total}${needs}${by}.`;
  }
  if (risk) return `Severity ${risk.severity}${isText(risk.level) ? ` (${risk.level})` : ""}.`;
  const objecting = deliberators.filter(isObjecting);
  if (deliberators.length === 0 || word === "INCOMPLETE" || (objecting.length === 0 && word !== "SHIP")) return because;
  const final = objecting.filter(({ irreducible }) => irreducible).length;
  const names = objecting.length > 0 ? ` (${listed(objecting.map(({ id }) => id))})` : "";
  const repair = final > 0 ? ` ${final} of them: no edit repairs it.` : " Fixable.";
  const absent = missing.length > 0 ? ` No answer from ${listed(missing)}.` : "";
  const of = deliberators.length - missing.length;
  const verb = objecting.length === 1 ? "objects" : "object";
  const end = word === "SHIP" ? (names ? " The policy lets it pass." : "") : repair;
  return `${objecting.length} of ${of} reviewers ${verb}${names}.${end}${absent}`;
}

function card(finding, isPlaced) {
  const { by, quote, issue, fix, blocks } = finding;
  const kind = blocks ? "article.finding.block" : "article.finding";
  const head = h("p", h("strong", by), h("span.note", blocks ? " objects" : " suggests"));
  return h(kind, head, !isPlaced && ifThere("blockquote", quote), h("p", issue), ifThere("p.fix", fix));
}

// A text as numbered lines, each with the findings that begin on it. Places are in bytes.
function lines(label, text, findings) {
  const bytes = bytesOf(text);
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const spans = findings.filter(({ span }) => isList(span));
  const rows = text.split("\n");
  if (rows.at(-1) === "") rows.pop();
  let start = 0;
  const items = rows.map((row, at) => {
    const end = start + bytesOf(row.replace(/\r+$/, "")).length;
    const inside = spans.flatMap(({ span }) => span).filter((cut) => cut > start && cut < end);
    const cuts = [...new Set([start, ...inside, end])].sort((one, other) => one - other);
    const pieces = cuts.slice(1).map((to, place) => {
      const over = spans.filter(({ span: [first, last] }) => first <= cuts[place] && to <= last);
      const piece = decoder.decode(bytes.subarray(cuts[place], to));
      return over.length > 0 ? h(over.some(({ blocks }) => blocks) ? "mark.block" : "mark", piece) : piece;
    });
    start += bytesOf(row).length + 1;
    return h("li", h(/^#{1,6} /.test(row) ? "span.code.head" : "span.code", pieces), findings.filter(({ line }) => line === at + 1).map((one) => card(one, one.span)));
  });
  const rest = findings.filter(({ line }) => !(line >= 1 && line <= rows.length));
  return [set(h("ol.lines", items), { "aria-label": label }), rest.map((one) => card(one, false))];
}

// A deliberator's answer in a few words.
function stance(asked) {
  if (!asked) return "";
  const { answer, status, text } = asked;
  if (!isObject(answer)) return [plain(status), ifThere("span.note", text && ` ${text}`)];
  const scores = isNumber(answer.score) ? [answer.score] : Object.values(answer.scores ?? {}).filter(isNumber);
  const mean = scores.reduce((sum, one) => sum + one, 0) / scores.length;
  const words = [answer.verdict, isObjecting(answer) && "blocks", answer.irreducible && "no edit repairs it"];
  return [...words, scores.length > 0 && `score ${mean.toFixed(1)}`].filter(isThere).join(", ");
}

function positions({ outcome, asked }) {
  const of = (step, id) => stance(asked.find((one) => one.step === step && one.member === id));
  const rows = (outcome.deliberators ?? []).map(({ id, counted, ungrounded }) => {
    const [first, second] = [of("r1", id), of("r2", id)];
    const isMoved = isThere(second) && String(first) !== String(second);
    const how = [counted !== "round2" && plain(counted ?? ""), ungrounded && " without a quote of the text"];
    return [[h("strong", id), isMoved && h("span.note", " changed")], first, second, how];
  });
  return table(["Reviewer", "Round 1", "Round 2", "Counted"], rows);
}

// The policy with its rows, if the council has its own, and with the row that decided.
function policy({ opened, outcome, rule }) {
  const { rows = [], weights = {} } = isObject(opened?.setup?.policy) ? opened.setup.policy : {};
  const condition = (part) => Object.entries(part).map(([name, value]) => `${plain(name)} ${listed(value)}`).join("; ");
  const other = (or) => (or ? `; ${or.then} if the adjudicator asks for ${or.adjudicator}` : "");
  const shown = rows.map(({ if: when = {}, then, or }, at) => {
    return [[at + 1, at + 1 === rule.row && " (decided)"], condition(when) || "otherwise", `${then}${other(or)}`];
  });
  return [
    facts([
      ["Policy", (outcome.policy ?? "").replace("seed/", "lenient/")],
      ["Objections", rule.blocks],
      ["No edit repairs", rule.irreducible],
      ["Adjudicator", rule.adjudicator],
      ["Weights", condition(weights)],
    ]),
    table(["#Row", "If", "Then"], shown),
  ];
}

function votes({ outcome: { decision }, asked }) {
  if (!decision) return null;
  const reason = (member) => asked.find((one) => one.member === member)?.answer?.rationale;
  const rows = decision.votes.map((vote) => [vote.member, vote.vote, vote.weight, vote.withheld ?? reason(vote.member)]);
  const weights = ["yes", "no", "abstain", "missing"].map((name) => [name, decision[name]]);
  return [facts([...weights, ["tie", decision.tie]]), table(["Member", "Vote", "#Weight", "Reason"], rows)];
}

function tree(nodes, parent = null) {
  const below = nodes.filter((node) => node.parent === parent);
  if (below.length === 0) return null;
  const item = ({ member, status, output }) => [
    h("p", h("strong", member), ` ${plain(status)}`, output && `, severity ${output.severity}`),
    ifThere("p.prose", output?.concern),
    ifThere("p.fix", output?.suggestion),
  ];
  return h("ul.tree", below.map((node) => h("li", item(node), tree(nodes, node.member))));
}

function conclusions(run) {
  const { outcome, violations } = run;
  const quoted = (head, text) => h("article.finding", h("p", head), h("p.prose", text));
  const effect = ({ decides, emitted, node }) => decides ?? (isNumber(emitted) ? `${emitted} emitted` : node);
  const rules = outcome.rules ?? [];
  const isDeciding = ({ id }) => id === outcome.decision?.rule;
  const locked = ({ what, trait }) => [what, isText(trait) && ` (${trait})`];
  const word = (one) => h("strong", one);
  return [
    section("Vote", votes(run)),
    section("Guidance", (outcome.fragments ?? []).map((one) => quoted([word(one.member), ` severity ${one.severity}, by the rule ${one.rule}`], one.text))),
    section("Messages", (outcome.messages ?? []).map((one) => quoted([word(one.from), ` to ${isList(one.to) ? listed(one.to) : "all"}, round ${one.round}`], one.text))),
    section("Reports", tree(outcome.nodes ?? [])),
    section("Rules, in order", table(["Rule", "Kind", "Applied", "Effect"], rules.map((one) => [[one.id, isDeciding(one) && " (decided)"], one.kind, one.fired ? "yes" : "no", effect(one)]))),
    section("Refused", table(["Code", "Member", "What", "Text"], violations.map((one) => [one.code, one.member, locked(one), one.excerpt ?? one.why]))),
  ];
}

function cost({ asked }) {
  const row = ({ member, step, executor, model, spent = {} }) =>
    [member, step, executor, model, spent.calls, spent.tokens_in, spent.tokens_out, spent.money?.amount, spent.ms];
  const heads = ["Member", "Step", "Executor", "Model", "#Calls", "#Tokens read", "#Written", "#Price", "#ms"];
  return table(heads, asked.map(row));
}

// The texts of the run: that of a review has the findings beside it.
function documents({ opened, outcome }, texts) {
  const blocking = (outcome.deliberators ?? []).filter(isObjecting).map(({ id }) => id);
  const findings = (outcome.findings ?? []).map((one) => ({ ...one, blocks: blocking.includes(one.by) }));
  const isReview = isList(outcome.deliberators) || texts.length === 0;
  const shown = texts.map(({ name, text }, at) =>
    section(isReview ? "The text with its findings" : `Given: ${name}`, lines(name, text, isReview && at === 0 ? findings : [])));
  const inputs = opened?.inputs ?? [];
  const absent = inputs.filter((_, at) => !texts.some(({ input }) => input === at));
  return [
    shown,
    section("Not in this file", absent.map(({ name, sha256: hash }) => h("p", `The text “${name}”, SHA-256 `, h("code", hash)))),
    texts.length === 0 && section("Findings", findings.map((one) => card(one, false))),
  ];
}

function proofOf({ origin, size, root, keys, records }) {
  const row = (record) => [record.n, record.kind, record.at, record.index + 1, record.data ? "here" : "left out", listed(record.signers)];
  return [
    facts([["Ledger", origin], ["Records at that time", size], ["Root", h("code", hex(root))], ...keys.map((key) => ["Key", h("code", key.text)])]),
    h("p", "Proven, once you know the key: the ledger had these records, byte for byte, when the key signed the root. Not proven: their times, that none came later (such as a person's decision), data that is left out, and that an answer is true."),
    details(`${records.length} records`, table(["#Record", "Kind", "At (UTC)", "#Place", "Data", "Signed by"], records.map(row))),
  ];
}

// The content of a page about a run. `texts` are those of the run that the file has, each checked against its hash.
function drawRun(run, proven, texts) {
  const { id, at, opened, outcome, word, overrides, asked, leftOut } = run;
  const subject = opened?.title ?? opened?.subject ?? "";
  const { because, reasoning, revision_brief: brief, dissent_summary: dissent, findings = [], notes = [] } = outcome;
  const answers = asked.filter((one) => one.answer || one.text);
  const isAssembly = !isList(outcome.deliberators);
  const isBlind = opened?.executors?.every((one) => !one.asks_a_model);
  const kinds = [...new Set(leftOut.map((record) => record.kind))];
  return [
    h("h1", mark(word), " ", h("span", subject)),
    ifThere("p.why", answer(run)),
    overrides.map((one) => h("p.override", mark(one.verdict), " decided ", h("strong", one.by), ": ", h("span", one.reason))),
    isBlind && h("p.note", "No model was asked."),
    !run.hasEnded && h("p.note", "The run has not ended in these records."),
    leftOut.length > 0 && h("p.note", `This file leaves out the data of ${leftOut.length} of ${proven.records.length} records: ${listed(kinds)}.`),
    facts([["Run", h("code", id)], ["Opened", minute(at)], ["Subject", opened?.title && opened.subject], ["Type", opened?.artifact_type], ["Protocol", opened?.protocol]]),
    isAssembly ? conclusions(run) : documents(run, texts),
    section(
      "Reasons",
      reasoning !== because && ifThere("p.prose", reasoning),
      findings.length === 0 && ifThere("p.prose", brief),
      isThere(dissent) && [h("h3", "Dissent"), h("p.prose", dissent)],
      notes.map((note) => h("p.note", note)),
      facts(["code", "missing", "shouldEscalate", "rounds", "endedBy", "objecting"].map((name) => [plain(name), listed(outcome[name])])),
      policy(run),
    ),
    section("Positions", positions(run)),
    isAssembly ? documents(run, texts) : conclusions(run),
    section("Answers", answers.map((one) => details([h("strong", one.member), `, ${one.step}: ${plain(one.status)}`], said(one.answer ?? one.text)))),
    details("Who was asked", cost(run)),
    section("Proof", proofOf(proven)),
  ];
}
