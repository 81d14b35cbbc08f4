/** Counts appends under HOLDFAST_FAULT and says each on stdout. Arguments: faults directory. */
import { Faults } from "../../../workers/failures/faults.ts";

const faults = Faults.parse(Deno.env.get("HOLDFAST_FAULT"), {
  dir: Deno.args[0]!,
  place: "engine",
});
for (let n = 1; n <= 5; n++) {
  faults.at("append", "training");
  Deno.stdout.writeSync(new TextEncoder().encode(`${n} `));
}
