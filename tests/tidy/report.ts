/**
 * `deno task tidy [NAME]`: how often each habit is broken; with a name, where. Fails nobody. Deno
 * reads sources for a program only under `deno test`.
 */
import { COUNTS, RULES } from "./measures.ts";
import { readRepository } from "./repository.ts";

const measures = { ...RULES, ...COUNTS };
const [wanted] = Deno.args;
const tree = await readRepository();
if (wanted === undefined) {
  for (const [name, findings] of Object.entries(measures)) {
    console.log(`${String(findings(tree).length).padStart(5)}  ${name}`);
  }
} else if (wanted in measures) measures[wanted]!(tree).forEach((line) => console.log(line));
else {
  console.error(`Cannot show '${wanted}': use one of ${Object.keys(measures).join(", ")}`);
  Deno.exit(2);
}
