// Takes pictures in Chromium. The first argument is the folder with playwright-core, the second one what is done:
//   docs SERVER FOLDER PATH=NAME...   pages for the documentation, in light and dark; SERVER is a file with its address
//   all SERVER FOLDER PATH=NAME...    pages as a whole, at 1280 and 390 pixels, in light and dark
//   terminal TEXT FOLDER              the output of a review with colours
//   post SERVER BODY                  no picture: starts a review
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const [folder, what, source, target, ...pages] = process.argv.slice(2);
const {chromium} = createRequire(pathToFileURL(folder + "/package.json"))("playwright-core");

const COLORS = {31: "#f28b82", 32: "#81c995", 33: "#fdd663", 34: "#8ab4f8", 35: "#c58af9", 36: "#78d9ec", 90: "#9aa0a6",
  91: "#f28b82", 92: "#81c995", 93: "#fdd663", 94: "#8ab4f8", 95: "#c58af9", 96: "#78d9ec"};

// The lines of a terminal as HTML.
function html(text) {
  const escaped = (part) => part.replace(/[&<>]/g, (sign) => ({"&": "&amp;", "<": "&lt;", ">": "&gt;"})[sign]);
  let styles = [];
  return text.split(/\u001b\[([\d;]*)m/).map((part, at) => {
    if (at % 2 === 1) {
      for (const code of part.split(";").map(Number)) {
        if (code === 0) styles = [];
        else if (code === 1) styles.push("font-weight:bold");
        else if (code === 2) styles.push("opacity:.7");
        else if (COLORS[code]) styles.push(`color:${COLORS[code]}`);
      }
      return "";
    }
    return `<span style="${styles.join(";")}">${escaped(part)}</span>`;
  }).join("");
}

const browser = await chromium.launch({
  executablePath: process.env.QUORATE_TEST_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});

// The pages of a server, each in these sizes and both themes.
async function shoot(sizes, name, isWhole) {
  const {token, url} = JSON.parse(readFileSync(source, "utf8"));
  const extraHTTPHeaders = {Authorization: `Bearer ${token}`};
  for (const viewport of sizes) {
    for (const colorScheme of ["light", "dark"]) {
      const context = await browser.newContext({colorScheme, viewport, extraHTTPHeaders});
      const page = await context.newPage();
      for (const [path, file] of pages.map((one) => one.split(/=(?=[^=]*$)/))) {
        const answer = await page.goto(url + path);
        if (answer.status() !== 200) throw new Error(`${path}: ${answer.status()}`);
        await page.waitForTimeout(1_500 * (what === "all" && path.endsWith("live")));
        const bottom = await page.evaluate(() => document.querySelector("footer").getBoundingClientRect().bottom);
        const clip = {x: 0, y: 0, width: viewport.width, height: Math.min(viewport.height, Math.ceil(bottom))};
        const shot = isWhole ? {fullPage: true} : {clip};
        await page.screenshot({path: `${target}/${name(file, viewport.width, colorScheme)}.png`, ...shot});
      }
      await context.close();
    }
  }
}

if (what === "docs") await shoot([{width: 1120, height: 1300}], (file, _, theme) => `${file}-${theme}`, false);
if (what === "all") {
  const sizes = [{width: 1280, height: 900}, {width: 390, height: 844}];
  await shoot(sizes, (file, width, theme) => `${file}-${width}-${theme}`, true);
}
if (what === "post") {
  const {url, token} = JSON.parse(readFileSync(source, "utf8"));
  const headers = {"Content-Type": "application/json", Authorization: `Bearer ${token}`};
  const answer = await fetch(`${url}/api/v1/reviews`, {method: "POST", headers, body: target});
  if (answer.status !== 202) throw new Error(await answer.text());
}
if (what === "terminal") {
  const lines = readFileSync(source, "utf8").split("\n").slice(0, 30).join("\n");
  const terminal = await (await browser.newContext({viewport: {width: 980, height: 700}})).newPage();
  await terminal.setContent(`<body style="margin:0;background:#1b1d21"><pre style="margin:0;padding:18px 22px;width:max-content;
    max-width:936px;overflow:hidden;color:#e8eaed;font:14px/1.45 'DejaVu Sans Mono',monospace">$ quorate review examples/launch-post.md\n${html(lines)}</pre></body>`);
  await terminal.locator("pre").screenshot({path: `${target}/terminal.png`});
}
await browser.close();
