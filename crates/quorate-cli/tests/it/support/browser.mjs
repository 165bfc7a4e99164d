// Opens pages in Chromium and says what a person or an attacker would see: one line of JSON for each page. Arguments: the
// folder with playwright-core and axe-core, then as JSON {link, url, paths, themes, shots, follow, drop, say}; `themes` are those
// in which axe judges the pages of `paths`; `follow` {path, ready} is the page of a run that begins once the browser
// has written the file `ready`, and is watched until it is decided; `drop` is a page that is given files, and a key for each; `say` {path, text, until} has a text typed on the page of a conversation and sent
// by Ctrl+Enter, and another tab wait for the answer.
import {writeFileSync} from "node:fs";
import {foreign, judge, launch, openPages, overflow} from "./page.mjs";

const [folder, told] = process.argv.slice(2);
const {link, url, paths, themes, shots, follow, drop, say} = JSON.parse(told);
const {browser, contexts, axe} = await launch(folder);
const first = await contexts.strict.newPage();
await first.goto(link);
const cookies = await contexts.strict.cookies();
for (const context of Object.values(contexts)) await context.addCookies(cookies);
await first.close();

let said;
const pages = await openPages(contexts, (event) => said.events.push(event), (asked) => {
  if (!asked.startsWith(url)) said.elsewhere.push(asked);
});
for (const path of paths) {
  said = {path, events: [], elsewhere: []};
  const open = async (page) => {
    said.status = Math.max(said.status ?? 0, (await page.goto(url + path)).status());
    return page;
  };
  if (themes.length > 0) await open(pages.judged);
  said.axe = await judge(pages.judged, axe, themes, shots && `${shots}/${path.replaceAll(/[^a-z0-9]+/g, "-")}`);
  const strict = await open(pages.strict);
  await strict.waitForFunction(() => !document.querySelector("#stand")?.textContent.startsWith("Proof: checking"));
  said.text = await strict.evaluate(() => document.body.innerText);
  said.foreign = await foreign(strict);
  said.overflow = await overflow(strict);
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
  // `n` goes to the first finding.
  await strict.keyboard.press("Escape");
  await strict.keyboard.press("n");
  said.step = await strict.evaluate(() => {
    const [steps, findings] = [document.querySelector(".steps output"), document.querySelectorAll(".finding")];
    return steps && [steps.textContent, `1 of ${findings.length}`, document.activeElement === findings[0]];
  });
  said.bare = await (await open(pages.bare)).locator("main").innerText();
  console.log(JSON.stringify(said));
}
if (follow) {
  const said = {path: follow.path, events: [], states: []};
  const page = await contexts.strict.newPage();
  page.on("pageerror", (error) => said.events.push(`error ${error.message}`));
  await page.goto(url);
  writeFileSync(follow.ready, "");
  const began = Date.now();
  while ((await page.goto(url + follow.path)).status() !== 200 && Date.now() - began < 60_000) await page.waitForTimeout(50);
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
      (document.querySelector("#stand").textContent.includes(name) || document.querySelector("#stand").textContent.includes("not valid")), name);
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
