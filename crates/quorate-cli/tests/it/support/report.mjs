// Opens report files in Chromium and says what a reader would see: one line of JSON for each. Arguments: the folder with
// playwright-core and axe-core, then as JSON {files, keys, themes, shots}; each of `keys` is entered in turn,
// and axe judges the pages in `themes`.
import {createRequire} from "node:module";
import {basename} from "node:path";
import {pathToFileURL} from "node:url";

const [folder, told] = process.argv.slice(2);
const {files, keys, themes, shots} = JSON.parse(told);
const require = createRequire(pathToFileURL(folder + "/package.json"));
const {chromium} = require("playwright-core");
const axe = require("axe-core").source;

const browser = await chromium.launch({
  executablePath: process.env.QUORATE_TEST_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
console.error(`Chromium ${browser.version()}`);
const contexts = {};
for (const [name, options] of Object.entries({
  light: {colorScheme: "light", bypassCSP: true},
  dark: {colorScheme: "dark", bypassCSP: true},
  strict: {},
  bare: {javaScriptEnabled: false},
  narrow: {viewport: {width: 320, height: 800}},
})) {
  contexts[name] = await browser.newContext({viewport: {width: 1280, height: 900}, ...options});
  contexts[name].setDefaultTimeout(120_000);
}

for (const file of files) {
  const url = pathToFileURL(file).href;
  const said = {file: basename(file), events: [], requests: [], axe: []};
  const open = async (name) => {
    const page = await contexts[name].newPage();
    page.on("dialog", (dialog) => { said.events.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
    page.on("pageerror", (error) => said.events.push(`error ${error.message}`));
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) said.events.push(message.text());
    });
    page.on("request", (request) => {
      if (request.url() !== url) said.requests.push(request.url());
    });
    await page.goto(url, {waitUntil: "load"});
    return page;
  };
  const stand = async (page) => {
    await page.waitForFunction(() => /^[■▲●]/.test(document.querySelector("#stand").textContent));
    return page.locator("#stand").innerText();
  };
  for (const theme of themes) {
    const page = await open(theme);
    await stand(page);
    if (shots) {
      // Of a very long page the beginning is enough: to draw all of it takes Chromium minutes.
      const clip = {x: 0, y: 0, width: 1280, height: Math.min(8_000, await page.evaluate(() => document.documentElement.scrollHeight))};
      await page.screenshot({path: `${shots}/report-${said.file}-${theme}.png`, fullPage: true, clip});
    }
    await page.evaluate(axe);
    const judged = await page.evaluate(() => globalThis.axe.run(document, {resultTypes: ["violations"]}));
    for (const broken of judged.violations) {
      said.axe.push(`${theme}: ${broken.id}: ${broken.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`);
    }
    await page.close();
  }
  const strict = await open("strict");
  said.stand = await stand(strict);
  said.flaws = await strict.locator("#flaws li").allInnerTexts();
  said.secure = await strict.evaluate(() => isSecureContext);
  said.foreign = await strict.evaluate(
    () => document.querySelectorAll("main script, main img, main iframe, main object, main style, main [style], main svg svg").length);
  said.keys = [];
  for (const key of keys) {
    if (!(await strict.locator("#key").isVisible())) break;
    await strict.locator("#key").fill(key);
    await strict.waitForTimeout(100);
    said.keys.push(await strict.locator("#stand").innerText());
  }
  await strict.emulateMedia({media: "print"});
  said.print = await strict.evaluate(() => document.body.innerText);
  said.cards = await strict.locator(".lines .finding:visible").count();
  said.endnotes = await strict.locator(".endnotes .finding:visible").count();
  await strict.close();
  const bare = await open("bare");
  said.bare = await bare.locator("#main").innerText();
  await bare.close();
  const narrow = await open("narrow");
  said.overflow = await narrow.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  await narrow.close();
  console.log(JSON.stringify(said));
}
await browser.close();
