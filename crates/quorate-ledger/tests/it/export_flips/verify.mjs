// Asks the pages' verifier about many documents. Arguments: verify.js, and a file with a JSON object in each line. Prints for
// each `holds`, `unusable`, or the failed check, as `scripts/verify_ledger.py --batch` does.
import {readFileSync} from "node:fs";

const [script, batch] = process.argv.slice(2);
const source = readFileSync(script).toString("base64");
const verify = await import(`data:text/javascript;base64,${source}`);
if (!(await verify.canCheck())) {
  console.error("this Node has no Ed25519");
  process.exit(3);
}
const bytes = (hash) => Uint8Array.from(Buffer.from(hash, "hex"));
for (const line of readFileSync(batch, "utf8").split("\n").filter(Boolean)) {
  const document = JSON.parse(line);
  try {
    if (document.inclusion) {
      const [leaf, index, size, path, root] = document.inclusion;
      await verify.inclusion(bytes(leaf), BigInt(index), BigInt(size), path.map(bytes), bytes(root));
    } else {
      const text = verify.textOf(Buffer.from(document.proof, "base64"));
      const proven = await verify.checkProof(text, document.signers);
      const vouched = await Promise.all(document.keys.map((key) => verify.vouchedKey(proven, key)));
      if (!vouched.some(Boolean)) throw new verify.Flaw("its key is not trusted");
    }
    console.log("holds");
  } catch (error) {
    if (error instanceof verify.Unreadable) console.log("unusable");
    else if (error instanceof verify.Flaw) console.log(JSON.stringify(error.message));
    else throw error;
  }
}
