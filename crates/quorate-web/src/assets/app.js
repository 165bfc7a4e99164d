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

// The filled-in fields of a form: `budget.calls` is a part of `budget`, and a select can name a field's text.
function fields(form) {
  const body = {};
  for (const field of form.elements) {
    if (!field.name || field.value === "") continue;
    const [outer, inner] = field.name.split(".");
    const value = field.type === "number" ? Number(field.value) : field.value;
    if (inner) (body[outer] ??= {})[inner] = value;
    else body[outer] = value;
  }
  const kind = $("[data-names]", form);
  if (kind) {
    body[kind.value] = { text: body.text };
    delete body.text;
  }
  return body;
}

for (const form of document.querySelectorAll("form.act")) {
  submits(form, async (key) => {
    const done = await post(form.dataset.post, fields(form), key);
    if (form.dataset.then === "stay") {
      form.reset();
      $("output", form).textContent = "";
    } else if (done.job && done.run) location.href = `/runs/${encodeURIComponent(done.run)}`;
    else location.reload();
  });
}

const text = $("#review textarea");
if (text) {
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
    $("[name=name]", text.form).value = file.name;
  });
}

// Times are relative; the exact one is their title.
const UNITS = [["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
for (const time of document.querySelectorAll("time.ago")) {
  const seconds = (Date.now() - Date.parse(time.dateTime)) / 1_000;
  const [unit, length] = UNITS.find(([, length]) => seconds >= length) ?? UNITS.at(-1);
  time.title = time.textContent;
  if (seconds < 30 * 86_400) time.textContent = relative.format(-Math.floor(seconds / length), unit);
}

// Keys, and the buttons and the rail that do the same as `n` and `p`.
const keys = $("#keys");
let before = "";
const findings = [...document.querySelectorAll(".finding")];
const steps = $(".steps");
let at = -1;
const show = (to) => {
  at = Math.min(Math.max(to, 0), findings.length - 1);
  findings[at].focus({ preventScroll: true });
  findings[at].scrollIntoView({ block: "center" });
  if (steps) $("output", steps).textContent = `${at + 1} of ${findings.length}`;
};
if (steps && findings.length) {
  steps.hidden = false;
  for (const button of steps.querySelectorAll("button")) {
    button.addEventListener("click", () => show(at + Number(button.dataset.step)));
  }
  $(".rail")?.addEventListener("click", (event) => {
    const place = [...$(".rail").children].indexOf(event.target);
    if (place >= 0) show(place);
  });
}
const go = { r: "/", a: "/audit", l: "/ledger", c: "/talks", b: "/playbooks" };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (before === "g" && go[event.key]) location.href = go[event.key];
  else if (event.key === "?") keys.showModal();
  else if (event.key === "/" && $(".filter select, .filter input")) {
    event.preventDefault();
    const field = $(".filter select, .filter input");
    field.closest("details")?.setAttribute("open", "");
    field.focus();
  } else if (event.key === "n" && findings.length) show(at + 1);
  else if (event.key === "p" && findings.length) show(at - 1);
  before = event.key;
});
