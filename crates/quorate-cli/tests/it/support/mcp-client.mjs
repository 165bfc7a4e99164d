// The official client of the TypeScript SDK, of the folder that the first argument names, and the server that it starts
// over standard input and output (`stdio COMMAND ARGUMENT...`) or asks over HTTP (`http URL`). Calls are lines of JSON on
// standard input, `[tool, arguments]` or `[method, parameters]`; what each comes to is a line of JSON.
import {createInterface} from "node:readline";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const [folder, kind, ...rest] = process.argv.slice(2);
const require = createRequire(pathToFileURL(folder + "/package.json"));
const from = async (path) => import(pathToFileURL(require.resolve("@modelcontextprotocol/sdk/" + path)));
const {Client} = await from("client/index.js");
const {StdioClientTransport} = await from("client/stdio.js");
const {StreamableHTTPClientTransport} = await from("client/streamableHttp.js");

const transport = kind === "http"
  ? new StreamableHTTPClientTransport(new URL(rest[0]))
  : new StdioClientTransport({command: rest[0], args: rest.slice(1), env: process.env});
const client = new Client({name: "test", version: "1"});
await client.connect(transport);
// The client validates results against the schemas that it has listed.
await client.listTools();
const others = {
  "resources/list": () => client.listResources(),
  "resources/templates/list": () => client.listResourceTemplates(),
  "resources/read": (parameters) => client.readResource(parameters),
  "prompts/list": () => client.listPrompts(),
  "prompts/get": (parameters) => client.getPrompt(parameters),
};
for await (const line of createInterface({input: process.stdin})) {
  const [name, args] = JSON.parse(line);
  let said;
  try {
    if (name in others) {
      said = await others[name](args);
    } else {
      const result = await client.callTool({name, arguments: args});
      said = {isError: result.isError ?? false, text: result.content.map((one) => one.text).join("\n")};
    }
  } catch (error) {
    said = {code: error.code, text: error.message};
  }
  console.log(JSON.stringify(said));
}
await client.close();
