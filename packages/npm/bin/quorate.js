#!/usr/bin/env node
// Runs the program with the same arguments, terminal and exit code.

import { spawn } from "node:child_process";
import { constants } from "node:os";

import { program } from "../program.js";

let child;
try {
  child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exit(5);
}
// A terminal sends Ctrl-C to both; this process waits for the program to end its members.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`error: ${error.message}`);
  process.exit(5);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
