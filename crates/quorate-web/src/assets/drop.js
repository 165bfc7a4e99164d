// The pages of a server about proofs: what a proof says, and files that the reader drops. It goes on where check.js ends.

// Checks a proof, or the proof in a report. It does not compare the report's page with the proof.
async function checkFile(text, name) {
  const embedded = /<script type="application\/octet-stream" id="proof">([^<]*)<\/script>/.exec(text)?.[1];
  const proven = await checkProof(embedded === undefined ? text : textOf(unbase64(embedded, null, "the proof")));
  showProven(proven);
  const says = embedded === undefined
    ? `${name} is intact`
    : `the proof in ${name} is intact (the page around it was not compared)`;
  return { proven, flaws: [], says };
}

const page = find("[data-proof]");
if (page) await check(async () => checkFile(await (await fetch(page.dataset.proof)).text(), "the proof"));
const picker = find("#file");
if (picker) {
  stand.textContent = "Choose a file.";
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
