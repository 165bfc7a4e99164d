// Takes the README's pictures in Chromium. Arguments: the folder with playwright-core, the file with the server's address,
// the output of a review with colours, the folder for the pictures.
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const [folder, server, review, pictures] = process.argv.slice(2);
const {chromium} = createRequire(pathToFileURL(folder + "/package.json"))("playwright-core");
const {link, url} = JSON.parse(readFileSync(server, "utf8"));

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
const open = (options) => browser.newContext(options);
const first = await open({});
await (await first.newPage()).goto(link);
const cookies = await first.cookies();
for (const colorScheme of ["light", "dark"]) {
  const context = await open({colorScheme, viewport: {width: 1120, height: 1300}});
  await context.addCookies(cookies);
  const page = await context.newPage();
  await page.goto(`${url}/runs/latest`);
  await page.evaluate(() => document.querySelector("#document")?.scrollIntoView({block: "center"}));
  await page.screenshot({path: `${pictures}/run-${colorScheme}.png`});
}
const lines = readFileSync(review, "utf8").split("\n").slice(0, 30).join("\n");
const terminal = await (await open({viewport: {width: 980, height: 700}})).newPage();
await terminal.setContent(`<body style="margin:0;background:#1b1d21"><pre style="margin:0;padding:18px 22px;width:max-content;
  max-width:936px;overflow:hidden;color:#e8eaed;font:14px/1.45 'DejaVu Sans Mono',monospace">$ quorate review examples/launch-post.md\n${html(lines)}</pre></body>`);
await terminal.locator("pre").screenshot({path: `${pictures}/terminal.png`});
await browser.close();
