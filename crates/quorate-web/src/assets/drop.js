// The pages of a server about proofs: what a proof says, and files that the reader drops. It goes on where check.js ends.

// A short summary of the records of a proof.
function factsOf({ origin, size, root, keys, records }) {
  const decisions = records.filter(({ kind }) => ["outcome", "override"].includes(kind));
  const words = decisions.map(({ kind, data }) => {
    const word = data?.verdict ?? data?.decision?.result ?? "its data is left out";
    return [kind === "override" ? `${data?.by ?? "a person"} decided` : "outcome", String(word).toUpperCase()];
  });
  const pairs = [
    ["Run", records[0].run],
    ...words,
    ["Records", `${records.length}, from ${records[0].at} to ${records.at(-1).at}`],
    ["Ledger", origin],
    ["Its records at that time", size],
    ["Root", hex(root)],
    ...keys.map((key) => ["Key", key.text]),
  ];
  return [h("dl.facts", pairs.map(([name, value]) => h("div", h("dt", name), h("dd", value))))];
}

// Checks a proof, or the proof in a report. It does not compare the report's page with the proof.
async function checkFile(text, name) {
  const embedded = /<script type="application\/octet-stream" id="proof">([^<]*)<\/script>/.exec(text)?.[1];
  const proven = await checkProof(embedded === undefined ? text : textOf(unbase64(embedded, null, "the proof")));
  const says = embedded === undefined
    ? `${name} is intact`
    : `the proof in ${name} is intact (its texts and the page around it were not compared)`;
  return { proven, says, draw: () => factsOf(proven) };
}

find("#key").addEventListener("input", judge);
find("#key-line").hidden = false;
const page = find("[data-proof]");
if (page) await check(async () => checkFile(await (await fetch(page.dataset.proof)).text(), "the proof"));
const picker = find("#file");
if (picker) {
  find("#stand").textContent = "Choose a file.";
  const take = async (file) => {
    if (file) await check(async () => checkFile(textOf(await file.arrayBuffer()), `“${file.name}”`));
  };
  picker.addEventListener("change", () => take(picker.files[0]));
  const target = find("#drop");
  for (const kind of ["dragover", "dragleave", "drop"]) {
    target.addEventListener(kind, (event) => {
      event.preventDefault();
      target.classList.toggle("dropping", kind === "dragover");
      if (kind === "drop") take(event.dataTransfer.files[0]);
    });
  }
}
