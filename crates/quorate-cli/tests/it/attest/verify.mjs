// Verifies a Sigstore bundle with a public key by @sigstore/verify: verify.mjs FOLDER BUNDLE KEY.
import { createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [folder, file, pem] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const { bundleFromJSON } = require("@sigstore/bundle");
const { toSignedEntity, Verifier } = require("@sigstore/verify");

const key = createPublicKey(readFileSync(pem, "utf8"));
const trusted = {
  certificateAuthorities: [],
  timestampAuthorities: [],
  tlogs: [],
  ctlogs: [],
  publicKey: () => ({ publicKey: key, validFor: () => true }),
};
const verifier = new Verifier(trusted, { tlogThreshold: 0, ctlogThreshold: 0, timestampThreshold: 0 });
verifier.verify(toSignedEntity(bundleFromJSON(JSON.parse(readFileSync(file, "utf8")))));
console.log("verified");
