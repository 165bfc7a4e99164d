// Where the program is: each platform has a package of its own with it, of which npm installs the one that fits.

import { createRequire } from "node:module";
import { accessSync, constants } from "node:fs";
import { dirname, join } from "node:path";

const require = createRequire(import.meta.url);

// The name of this platform's package.
function platform() {
  const isMusl = process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
  return `@quorate/${process.platform}-${process.arch}${isMusl ? "-musl" : ""}`;
}

// The path of the program, or an error that says what to do.
export function program() {
  const named = process.env.QUORATE_PROGRAM;
  if (named) {
    return runnable(named, `QUORATE_PROGRAM names ${named}, which is no program`);
  }
  const name = platform();
  let folder;
  try {
    folder = dirname(require.resolve(`${name}/package.json`));
  } catch {
    const help = "npm leaves it out with --omit=optional, and where there is no build for this platform";
    throw missing(`the package ${name} is not installed: ${help}`);
  }
  return runnable(join(folder, "bin", "quorate"), `the package ${name} has no program`);
}

function runnable(path, problem) {
  try {
    accessSync(path, constants.X_OK);
  } catch {
    throw missing(problem);
  }
  return path;
}

function missing(message) {
  return Object.assign(new Error(message), { code: "npm:program_missing" });
}
