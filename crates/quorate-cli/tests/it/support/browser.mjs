// Opens pages in Chromium and says what a person or an attacker would see: one line of JSON for each page. Arguments: the
// folder with playwright-core and axe-core, then as JSON {link, url, paths, themes, shots, follow, drop, say}; `themes` are those
// in which axe judges the pages of `paths`; `follow` is the page of an open run, which is watched until it is decided; `drop` is a
// page that is given files, and a key for each; `say` {path, text, until} has a text typed on the page of a conversation and sent
// by Ctrl+Enter, and another tab wait for the answer.
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const [folder, told] = process.argv.slice(2);
const {link, url, paths, themes, shots, follow, drop, say} = JSON.parse(told);
const require = createRequire(pathToFileURL(folder + "/package.json"));
const {chromium} = require("playwright-core");
const axe = require("axe-core").source;

const browser = await chromium.launch({
  executablePath: process.env.QUORATE_TEST_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
console.error(`Chromium ${browser.version()}`);

// axe needs a script of its own in the page, which the pages' policy forbids: a second context without the policy judges.
const contexts = {};
for (const [name, options] of Object.entries({
  light: {colorScheme: "light", bypassCSP: true},
  dark: {colorScheme: "dark", bypassCSP: true},
  strict: {colorScheme: "light"},
  bare: {javaScriptEnabled: false},
  narrow: {viewport: {width: 320, height: 800}},
})) {
  contexts[name] = await browser.newContext({viewport: {width: 1280, height: 900}, ...options});
  contexts[name].setDefaultTimeout(120_000);
}
const first = await contexts.strict.newPage();
await first.goto(link);
const cookies = await contexts.strict.cookies();
for (const context of Object.values(contexts)) await context.addCookies(cookies);
await first.close();

for (const path of paths) {
  const said = {path, events: [], axe: [], elsewhere: []};
  const open = async (name) => {
    const page = await contexts[name].newPage();
    page.on("dialog", (dialog) => { said.events.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
    page.on("pageerror", (error) => said.events.push(`error ${error.message}`));
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) said.events.push(message.text());
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(url)) said.elsewhere.push(request.url());
    });
    const response = await page.goto(url + path, {waitUntil: "load"});
    said.status = response.status();
    return page;
  };
  for (const theme of themes) {
    const page = await open(theme);
    if (shots) {
      // Of a very long page the beginning is enough: to draw all of it takes Chromium minutes.
      const clip = {x: 0, y: 0, width: 1280, height: Math.min(8_000, await page.evaluate(() => document.documentElement.scrollHeight))};
      await page.screenshot({path: `${shots}/${path.replaceAll(/[^a-z0-9]+/g, "-")}-${theme}.png`, fullPage: true, clip});
    }
    await page.evaluate(axe);
    const judged = await page.evaluate(() => globalThis.axe.run(document, {resultTypes: ["violations"]}));
    for (const broken of judged.violations) {
      said.axe.push(`${theme}: ${broken.id}: ${broken.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`);
    }
    await page.close();
  }
  const strict = await open("strict");
  await strict.waitForFunction(() => !document.querySelector("#stand")?.textContent.startsWith("Checking"));
  said.text = await strict.evaluate(() => document.body.innerText);
  said.foreign = await strict.evaluate(
    () => document.querySelectorAll("main script, main img, main iframe, main object, main style, main [style]").length);
  // The first stops of the keyboard: each is visible and has a name.
  said.stops = [];
  for (let at = 0; at < 8; at += 1) {
    await strict.keyboard.press("Tab");
    said.stops.push(await strict.evaluate(() => {
      const here = document.activeElement;
      return here.getAttribute("aria-label") || here.innerText?.trim() || here.name || "";
    }));
  }
  // In a field it would be a letter.
  await strict.evaluate(() => document.activeElement.blur());
  await strict.keyboard.press("?");
  said.keys = await strict.evaluate(() => document.querySelector("dialog")?.open ?? null);
  await strict.close();
  const bare = await open("bare");
  said.bare = await bare.locator("main").innerText();
  await bare.close();
  const narrow = await open("narrow");
  said.overflow = await narrow.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  await narrow.close();
  console.log(JSON.stringify(said));
}
if (follow) {
  const said = {path: follow, events: [], states: []};
  const page = await contexts.strict.newPage();
  page.on("pageerror", (error) => said.events.push(`error ${error.message}`));
  await page.goto(url + follow);
  const began = Date.now();
  for (let state = ""; Date.now() - began < 60_000; ) {
    const now = await page.locator("#live-status").textContent({timeout: 500}).catch(() => null);
    // A slow machine may take longer to find it.
    if (now === null && (await page.locator("#live").count().catch(() => 1)) === 0) break;
    if (now === null) continue;
    if (now !== state) said.states.push((state = now));
    await page.waitForTimeout(50);
  }
  said.heading = await page.locator("h1").innerText();
  console.log(JSON.stringify(said));
}
if (drop) {
  const said = {path: drop.path, requests: [], stands: []};
  const page = await contexts.strict.newPage();
  await page.goto(url + drop.path, {waitUntil: "load"});
  // The icon of the page may come late.
  page.on("request", (request) => {
    if (!request.url().startsWith(`${url}/assets/`)) said.requests.push(request.url());
  });
  const stand = page.locator("#stand");
  for (const file of drop.files) {
    await page.evaluate(() => { document.querySelector("#key").value = ""; });
    await page.setInputFiles("#file", file);
    const name = file.split("/").at(-1);
    await page.waitForFunction((name) => /^[■▲●]/.test(document.querySelector("#stand").textContent) &&
      (document.querySelector("#stand").textContent.includes(name) || document.querySelector("#stand").textContent.includes("nothing")), name);
    said.stands.push(await stand.innerText());
    if (!said.stands.at(-1).startsWith("▲")) continue;
    await page.locator("#key").fill(drop.key);
    await page.waitForFunction(() => /^[■●]/.test(document.querySelector("#stand").textContent));
    said.stands.push(await stand.innerText());
  }
  console.log(JSON.stringify(said));
}
if (say) {
  const said = {path: say.path, events: []};
  const [page, other] = [await contexts.strict.newPage(), await contexts.strict.newPage()];
  for (const one of [page, other]) {
    one.on("pageerror", (error) => said.events.push(`error ${error.message}`));
    one.on("console", (message) => {
      if (message.type() === "error") said.events.push(message.text());
    });
    await one.goto(url + say.path);
  }
  await page.locator("textarea[name=text]").fill(say.text);
  await page.locator("textarea[name=text]").press("Control+Enter");
  for (const one of [page, other]) {
    await one.locator(".turn .prose", {hasText: say.until}).first().waitFor({timeout: 30_000, state: "attached"});
  }
  said.turns = await other.locator(".turn .prose").allInnerTexts();
  said.field = await page.locator("textarea[name=text]").inputValue();
  said.foreign = await other.evaluate(() => document.querySelectorAll("main script, main img, main iframe").length);
  console.log(JSON.stringify(said));
}
await browser.close();
