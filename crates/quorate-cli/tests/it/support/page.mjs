// Chromium, and the pages in which browser.mjs and report.mjs look at what Quorate draws. A page is kept from one address to
// the next: to open one takes Chromium longer than most of what is then looked at.
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

// `folder` has playwright-core and axe-core.
export async function launch(folder) {
  const require = createRequire(pathToFileURL(folder + "/package.json"));
  const browser = await require("playwright-core").chromium.launch({
    executablePath: process.env.QUORATE_TEST_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  console.error(`Chromium ${browser.version()}`);
  const contexts = {};
  for (const [name, options] of Object.entries({
    // axe needs a script of its own in the page, which the pages' policy forbids: a context without the policy judges.
    judged: {bypassCSP: true},
    strict: {},
    bare: {javaScriptEnabled: false},
  })) {
    contexts[name] = await browser.newContext({viewport: WIDE, ...options});
    contexts[name].setDefaultTimeout(120_000);
  }
  return {browser, contexts, axe: require("axe-core").source};
}

const WIDE = {width: 1280, height: 900};
const PHONE = {width: 390, height: 844};

// A page of each context; what happens in them is told to `event` and `request`.
export async function openPages(contexts, event, request) {
  const pages = {};
  for (const name of Object.keys(contexts)) {
    const page = (pages[name] = await contexts[name].newPage());
    page.on("dialog", (dialog) => { event(`dialog ${dialog.message()}`); dialog.dismiss(); });
    page.on("pageerror", (error) => event(`error ${error.message}`));
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) event(message.text());
    });
    page.on("request", (asked) => request(asked.url()));
  }
  return pages;
}

// What axe finds in the themes on a desk and on a phone, and a picture of each at `shot`, a path without its ending. What is
// folded is judged open, and each popover is judged while it is shown.
export async function judge(page, axe, themes, shot) {
  const found = [];
  if (themes.length > 0) await page.evaluate(axe);
  const run = async (where) => {
    const judged = await page.evaluate(() => globalThis.axe.run(document, {resultTypes: ["violations"]}));
    for (const broken of judged.violations) {
      found.push(`${where}: ${broken.id}: ${broken.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`);
    }
  };
  for (const theme of themes) {
    await page.emulateMedia({colorScheme: theme});
    for (const viewport of [WIDE, PHONE]) {
      await page.setViewportSize(viewport);
      const where = `${theme} ${viewport.width}`;
      if (shot) {
        // The beginning of a very long page is enough: Chromium takes minutes to draw all of it.
        const clip = {x: 0, y: 0, width: viewport.width, height: Math.min(8_000, await page.evaluate(() => document.documentElement.scrollHeight))};
        await page.screenshot({path: `${shot}-${viewport.width}-${theme}.png`, fullPage: true, clip});
      }
      await page.evaluate(() => document.querySelectorAll("details").forEach((fold) => { fold.open = true; }));
      await run(where);
      for (const id of await page.evaluate(() => [...document.querySelectorAll("[popover]")].map((form) => form.id))) {
        await page.evaluate((id) => document.getElementById(id).showPopover(), id);
        await run(`${where} #${id}`);
        await page.evaluate((id) => document.getElementById(id).hidePopover(), id);
      }
      await page.evaluate(() => document.querySelectorAll("details").forEach((fold) => { fold.open = false; }));
    }
    await page.setViewportSize(WIDE);
  }
  return found;
}

// The pixels by which a page is wider than a screen of 320.
export async function overflow(page) {
  await page.setViewportSize({width: 320, height: 800});
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  await page.setViewportSize(WIDE);
  return wider;
}

// The elements in a page's content that Quorate does not write: they would be markup of a text.
export function foreign(page, more = "") {
  return page.evaluate(
    (more) => document.querySelectorAll(`main script, main img, main iframe, main object, main style, main [style]${more}`).length, more);
}
