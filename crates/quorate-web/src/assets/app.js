// Keys, forms and live updates of the pages. Texts are only set as text, never as markup.

const $ = (selector, within = document) => within.querySelector(selector);

// Copy buttons are shown where the browser can copy.
for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
}

// Sends JSON, with a key so that a repeated request does nothing twice.
async function post(url, body, key) {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": key },
    body: JSON.stringify(body),
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error([said.message, said.help].filter(Boolean).join(": "));
  return said;
}

function submits(form, send) {
  let key = crypto.randomUUID();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const output = $("output", form);
    const button = $("button", form);
    button.disabled = true;
    output.textContent = "…";
    try {
      await send(key);
      key = crypto.randomUUID();
    } catch (error) {
      output.textContent = error.message;
      key = crypto.randomUUID();
    }
    button.disabled = false;
  });
}

const fields = (form) =>
  Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));

for (const form of document.querySelectorAll("form.act")) {
  submits(form, async (key) => {
    await post(form.dataset.post, fields(form), key);
    if (form.dataset.then === "stay") {
      form.reset();
      $("output", form).textContent = "";
    } else location.reload();
  });
}

const review = $("#review");
if (review) {
  submits(review, async (key) => {
    const started = await post("/api/v1/reviews", fields(review), key);
    location.href = started.run ? `/runs/${encodeURIComponent(started.run)}` : "/";
  });
  const text = $("textarea", review);
  const take = (event, over) => {
    event.preventDefault();
    text.classList.toggle("dropping", over);
  };
  text.addEventListener("dragover", (event) => take(event, true));
  text.addEventListener("dragleave", (event) => take(event, false));
  text.addEventListener("drop", async (event) => {
    take(event, false);
    const file = event.dataTransfer.files[0];
    if (!file) return;
    text.value = await file.text();
    $("[name=name]", review).value = file.name;
  });
}

// Keys.
const keys = $("#keys");
let before = "";
const findings = [...document.querySelectorAll(".finding")];
let at = -1;
const go = { r: "/", a: "/audit", l: "/ledger", c: "/talks", b: "/playbooks" };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (before === "g" && go[event.key]) location.href = go[event.key];
  else if (event.key === "?") keys.showModal();
  else if (event.key === "/" && $(".filter select, .filter input")) {
    event.preventDefault();
    $(".filter select, .filter input").focus();
  } else if ((event.key === "n" || event.key === "p") && findings.length) {
    at = Math.min(Math.max(at + (event.key === "n" ? 1 : -1), 0), findings.length - 1);
    findings[at].focus();
    findings[at].scrollIntoView({ block: "center" });
  }
  before = event.key;
});
