/**
 * Appends for ever, and says on stdout which rows were acknowledged. Arguments: database, run.
 * Ended by SIGKILL.
 */
import { SqliteStore } from "../../../engine/stores/sqlite_store.ts";
import { processOwner } from "../../../engine/stores/ownership.ts";

const [path, run] = Deno.args as [string, string];
const store = new SqliteStore(path);
const { head } = await store.claim(run, processOwner(), { lease_ms: 60_000 });
const say = (text: string) => Deno.stdout.writeSync(new TextEncoder().encode(text));
for (;;) {
  const pair = [0, 1].map((i) => ({
    kind: "result" as const,
    key: `k#${i}`,
    value: '{"x":"' + "y".repeat(500) + '"}',
  }));
  const [one, two] = await Promise.all([
    store.append(run, head.epoch, pair),
    store.append(run, head.epoch, pair),
  ]);
  if (one.fenced || two.fenced) throw new Error("fenced");
  say(`${two.last_seq}\n`);
}
