// Shows the card of `quorate mcp` in Chromium as a host of MCP Apps does, in a frame with scripts and no origin, and says what a
// person would see: one line of JSON for each result. Arguments: the folder with playwright-core and axe-core, then a file of JSON
// {page, results, answers, shots}: the card, results of tools, each with a name, and what the host answers to `job_poll` and
// `council_override`.
import {readFileSync} from "node:fs";

import {launch, openPages} from "./page.mjs";

const [folder, told] = process.argv.slice(2);
const {page: html, results, answers, shots} = JSON.parse(readFileSync(told, "utf8"));
const {browser, contexts, axe} = await launch(folder);
let said;
const {judged} = await openPages(contexts, (event) => said.events.push(event), (asked) => {
  if (!/^(about|data):/.test(asked)) said.requests.push(asked);
});

// The host: it answers the card, keeps its calls, and gives it the height that it asks for.
const host = ({html, result, answers, theme}) => {
  document.body.style.margin = 0;
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.style = "width: 100%; border: 0; display: block";
  globalThis.calls = [];
  addEventListener("message", ({source, data}) => {
    const {id, method, params} = data;
    const send = (message) => source.postMessage({jsonrpc: "2.0", ...message}, "*");
    if (method === "ui/initialize") {
      send({id, result: {protocolVersion: "2026-01-26", hostInfo: {name: "test", version: "1"}, hostCapabilities: {serverTools: {}}, hostContext: {theme}}});
    } else if (method === "ui/notifications/initialized") {
      send({method: "ui/notifications/tool-input", params: {arguments: {}}});
      send({method: "ui/notifications/tool-result", params: result});
    } else if (method === "ui/notifications/size-changed") frame.style.height = `${params.height}px`;
    else if (method === "tools/call") {
      calls.push(params);
      send({id, result: answers[params.name]});
    }
  });
  frame.srcdoc = html;
  document.body.append(frame);
};

for (const {name, result} of results) {
  said = {name, events: [], requests: [], axe: [], overflow: 0};
  for (const theme of ["light", "dark"]) {
    for (const width of [320, 600]) {
      await judged.setViewportSize({width, height: 1_100});
      await judged.goto("about:blank");
      await judged.evaluate(host, {html, result, answers, theme});
      const card = judged.frames()[1] ?? (await judged.waitForEvent("frameattached"));
      await card.waitForFunction(() => !/WAITING|DECIDING/.test(document.querySelector("#word").textContent));
      const measured = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;
      said.overflow = Math.max(said.overflow, await card.evaluate(measured));
      said.text = await card.evaluate(() => document.body.innerText);
      said.look = await card.evaluate(() => document.querySelector("#word").className);
      said.foreign = await card.evaluate(() => document.querySelectorAll("main :is(script, img, svg, iframe, a, style, [style])").length);
      if (await card.locator("#decide").isVisible()) {
        // By the keyboard alone: first without what is required.
        await judged.keyboard.press("Tab");
        await judged.keyboard.press("Enter");
        await card.locator("#record").press("Enter");
        said.early = await judged.evaluate(() => calls.filter(({name}) => name === "council_override").length);
        await card.locator("#verdict").press("s");
        await card.locator("#why").pressSequentially("legal agreed");
        await card.locator("#by").pressSequentially("Ada");
        if (shots) await judged.screenshot({path: `${shots}/card-${name}-form-${width}-${theme}.png`});
        await card.evaluate(axe);
        said.axe.push(...(await card.evaluate(() => axe.run())).violations.map(({id}) => `${theme}: ${id}`));
        await card.locator("#record").press("Enter");
        await card.waitForFunction(() => !document.querySelector("#person").hidden || document.querySelector("#failed").textContent);
        said.person = await card.evaluate(() => document.querySelector("#person").innerText || document.querySelector("#failed").innerText);
      } else await card.evaluate(axe);
      said.axe.push(...(await card.evaluate(() => axe.run())).violations.map(({id}) => `${theme}: ${id}`));
      if (shots) await judged.screenshot({path: `${shots}/card-${name}-${width}-${theme}.png`});
      said.calls = await judged.evaluate(() => calls);
    }
  }
  console.log(JSON.stringify(said));
}
await browser.close();
