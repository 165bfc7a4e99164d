// A report: takes what it embeds out of the file, and draws the page anew from the verified records alone. Nothing else of the
// file stays, so that a change of it has no effect; what could have one before the check ends is refused.

// An element with the name of a method hides this method of the document.
const all = (selector) => [...Document.prototype.querySelectorAll.call(document, selector)];
const contents = (selector) => all(selector).map(({ textContent }) => textContent);
// The policy, with a place for the hash of this script. Quorate writes it here.
const POLICY = "$POLICY";
// The hash of all that is embedded: so a proof that was cut back to an earlier state is refused.
const EMBEDDED = "$EMBEDDED";

const policies = all("meta[http-equiv]");
// Only this ends a redirection.
if (policies.length > 1) stop();
const isPolicy = policies.length === 1 && policies[0].matches("head > meta");
const declared = isPolicy ? policies[0].content : "";
const styles = contents("style");
const programs = contents("script:not([type='application/octet-stream'])");
const isActive = all("*").some(({ attributes }) => [...attributes].some(({ name }) => name.startsWith("on")));
const proofs = contents("script#proof");
const embedded = contents("script[type='application/octet-stream']").join("\n");
const blocks = all("script.text").map(({ dataset, textContent }) => ({ input: Number(dataset.input), encoded: textContent }));

all(":root")[0].remove();
const named = (kind, attributes, ...children) => set(h(kind, ...children), attributes);
const head = [
  named("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }),
  named("meta", { name: "color-scheme", content: "light dark" }),
  h("title", "Quorate report"),
];
const keyInput = named("input", { id: "key", autocomplete: "off", spellcheck: "false" });
const label = h("label", "The ledger's key or fingerprint, which its owner gave you by another way ", keyInput);
const main = h("main", named("p", { id: "stand", role: "status" }), h("p.note", label), named("div", { id: "drawn" }));
document.append(named("html", { lang: "en" }, h("head", head), h("body", main)));
keyInput.addEventListener("input", judge);

const digest = async (text) => base64(await sha256(text));

await check(async () => {
  need(programs.length === 1 && !isActive, "it has a program that no report has");
  need(declared === POLICY.replace("$SCRIPT", await digest(programs[0])), "it has another policy, or a redirection");
  const styled = await Promise.all(styles.map(digest));
  const style = styles[styled.findIndex((hash) => POLICY.includes(hash))];
  need(style !== undefined, "the style sheet was changed");
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  document.adoptedStyleSheets = [sheet];
  need(proofs.length === 1, "it has no single proof");
  const proven = await checkProof(textOf(unbase64(proofs[0], null, "the proof")));
  const run = runOf(proven.records);
  const texts = [];
  for (const { input, encoded } of blocks) {
    const { name, sha256: hash } = run.opened?.inputs?.[input] ?? {};
    const bytes = unbase64(encoded, null, "a text");
    const isNext = texts.every((text) => text.input < input);
    need(isNext && hash === hex(await sha256(bytes)), `the text “${name ?? input}” is not the one that the run was about`);
    texts.push({ input, name, text: textOf(bytes) });
  }
  need(EMBEDDED === (await digest(embedded)), "its proof or texts were changed");
  document.title = visible(`${run.word} ${run.opened?.title ?? run.opened?.subject ?? ""} · Quorate report`);
  return { proven, says: gist(run), draw: () => [h("div", drawRun(run, proven, texts))] };
});
