// Opens report files in Chromium and says what a reader would see: one line of JSON for each. Arguments: the folder with
// playwright-core and axe-core, then as JSON {files, shots}; of a file {path, keys, themes}: each of `keys` is entered in turn,
// and changes the mark; axe judges the page in `themes`. Without themes nothing is judged but what the page shows.
import {basename} from "node:path";
import {pathToFileURL} from "node:url";
import {foreign, judge, launch, openPages, overflow} from "./page.mjs";

const [folder, told] = process.argv.slice(2);
const {files, shots} = JSON.parse(told);
const {browser, contexts, axe} = await launch(folder);
let said, url;
const {judged, strict, bare} = await openPages(contexts, (event) => said.events.push(event), (asked) => {
  if (asked !== url) said.requests.push(asked);
});
// An edit may keep the page from loading, or its script from running.
const CHECKED = /^[■▲●]/.source;
const wait = (page, states) => page.waitForFunction((states) =>
  document.readyState === "complete" && new RegExp(states).test(document.querySelector("#stand")?.textContent), states);
const stand = (page) => page.locator("#stand").first().innerText();
const drawn = async (page) => (await page.locator("#drawn").count()) > 0 ? page.locator("#drawn").innerText() : "";

for (const {path, keys, themes} of files) {
  url = pathToFileURL(path).href;
  said = {file: basename(path), events: [], requests: [], keys: []};
  if (themes.length > 0) {
    await judged.goto(url);
    await wait(judged, CHECKED);
  }
  said.axe = await judge(judged, axe, themes, shots && `${shots}/report-${said.file}`);
  await strict.goto(url, {waitUntil: "commit"});
  await wait(strict, `${CHECKED}|not checked yet`);
  said.stand = await stand(strict);
  said.title = await strict.title();
  said.drawn = await drawn(strict);
  said.shown = await strict.locator("body").innerText();
  said.page = await strict.evaluate(() => {
    const sheets = document.adoptedStyleSheets.map((sheet) => sheet.cssRules.length);
    return [document.documentElement.outerHTML, sheets, document.styleSheets.length].join("\n");
  });
  said.stays = strict.url() === url;
  if (themes.length === 0) {
    console.log(JSON.stringify(said));
    continue;
  }
  said.secure = await strict.evaluate(() => isSecureContext);
  said.foreign = await foreign(strict, ", main svg svg");
  said.overflow = await overflow(strict);
  for (const key of keys) {
    const before = (await stand(strict))[0];
    await strict.locator("#key").fill(key);
    await strict.waitForFunction((before) => document.querySelector("#stand").textContent[0] !== before, before);
    said.keys.push(await stand(strict));
    if (said.keys.length === 1) said.withheld = await drawn(strict);
  }
  await strict.emulateMedia({media: "print"});
  said.print = await strict.evaluate(() => document.body.innerText);
  await strict.emulateMedia({media: null});
  await bare.goto(url);
  said.bare = await bare.locator("body").innerText();
  console.log(JSON.stringify(said));
}
await browser.close();
