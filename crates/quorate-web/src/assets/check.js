// Shows the result of a check in a report and on the pages about proofs. Texts are set as text alone.

// What has no form, or changes the direction of what follows, is shown by its code, so that no text can look like another.
const HIDDEN =
  /(?![\n\t])(?!(?<=\p{Emoji}\ufe0f?)[\ufe0e\ufe0f\u200d])(?!(?<=[\p{Lo}\p{M}])[\u200c\u200d])[\p{Cc}\p{DI}\u2028\u2029\u2800\ufdd0-\ufdef\ufff9-\uffff]/gu;
const coded = (letter) => `[U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`;
const visible = (text) => String(text).replace(/\r\n?/g, "\n").replace(HIDDEN, coded);

// An element with its classes: `p.note`. Children are texts, numbers, elements, lists of these, or nothing.
function h(kind, ...children) {
  const [name, ...styles] = kind.split(".");
  const element = document.createElement(name);
  if (styles.length > 0) element.className = styles.join(" ");
  for (const child of children.flat(Infinity)) {
    if (child instanceof Node) element.append(child);
    else if (isThere(child)) element.append(visible(child));
  }
  return element;
}

function isThere(child) {
  return isList(child) ? child.some(isThere) : ![null, undefined, false, ""].includes(child);
}

const find = (selector) => document.querySelector(selector);
let checked = null;

function say(style, text, content = []) {
  find("#stand").className = `stand ${style}`;
  find("#stand").textContent = visible(text);
  find("#drawn")?.replaceChildren(...content);
}

// Shows what was checked; nothing of it to a reader whose key is another one. The shortest key is a fingerprint.
async function judge() {
  if (!checked) return;
  const { proven, says, draw } = checked;
  const given = find("#key").value.trim();
  const key = await vouchedKey(proven, given);
  if (key) say("good", `● Proof valid: ${says}; signed by key ${key} that you entered.`, draw());
  else if (given.length < 32) say("none", `▲ Proof valid: ${says}; not signed by a key that you entered.`, draw());
  else say("bad", "■ Proof of another key: the key that you entered did not sign these records.");
}

// Runs a check and shows its result, or nothing but what failed.
async function check(work) {
  checked = null;
  say("none", "Proof: checking…");
  try {
    if (await canCheck()) {
      checked = await work();
      await judge();
    } else {
      say("none", "▲ Proof not checked: this browser cannot. Open the file in a newer one.");
    }
  } catch (error) {
    checked = null;
    say("bad", `■ Proof not valid: ${error.message}.`);
    if (!(error instanceof Flaw || error instanceof Unreadable)) throw error;
  }
}
