// Opens report files in Chromium and says what a reader would see: one line of JSON for each. Arguments: the folder with
// playwright-core and axe-core, then as JSON {files, shots}; of a file {path, keys, themes}: each of `keys` is entered in turn,
// and changes the mark; axe judges the page in `themes`.
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
const stand = async (page) => {
  await page.waitForFunction(() => /^[■▲●]/.test(document.querySelector("#stand").textContent));
  return page.locator("#stand").innerText();
};

for (const {path, keys, themes} of files) {
  url = pathToFileURL(path).href;
  said = {file: basename(path), events: [], requests: []};
  if (themes.length > 0) {
    await judged.goto(url);
    await stand(judged);
  }
  said.axe = await judge(judged, axe, themes, shots && `${shots}/report-${said.file}`);
  await strict.goto(url);
  said.stand = await stand(strict);
  said.flaws = await strict.locator("#flaws li").allInnerTexts();
  said.secure = await strict.evaluate(() => isSecureContext);
  said.foreign = await foreign(strict, ", main svg svg");
  said.overflow = await overflow(strict);
  said.keys = [];
  for (const key of keys) {
    const before = (await strict.locator("#stand").innerText())[0];
    await strict.locator("#key").fill(key);
    await strict.waitForFunction((before) => document.querySelector("#stand").textContent[0] !== before, before);
    said.keys.push(await stand(strict));
  }
  await strict.emulateMedia({media: "print"});
  said.print = await strict.evaluate(() => document.body.innerText);
  said.cards = await strict.locator(".lines .finding:visible").count();
  said.endnotes = await strict.locator(".endnotes .finding:visible").count();
  await strict.emulateMedia({media: null});
  await bare.goto(url);
  said.bare = await bare.locator("#main").innerText();
  console.log(JSON.stringify(said));
}
await browser.close();
