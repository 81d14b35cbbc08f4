import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { FollowedLog, isNewestPart, lastLines } from "../../cli/log_file.ts";

const KEPT = 2;

/** A log as an agent writes it: names move on, the oldest part goes. */
class Writer {
  written = "";

  constructor(readonly path: string) {
    Deno.writeTextFileSync(path, "");
  }

  add(text: string): void {
    this.written += text;
    Deno.writeTextFileSync(this.path, text, { append: true });
  }

  turnOver(): void {
    for (let number = KEPT; number > 0; number--) {
      const newer = number === 1 ? this.path : `${this.path}.${number - 1}`;
      try {
        Deno.renameSync(newer, `${this.path}.${number}`);
      } catch (error) {
        ok(error instanceof Deno.errors.NotFound);
      }
    }
    Deno.writeTextFileSync(this.path, "");
  }

  /** What is left on the disk. */
  get kept(): string {
    const parts = [2, 1, 0].map((number) => number === 0 ? this.path : `${this.path}.${number}`);
    return parts.map((path) => {
      try {
        return Deno.readTextFileSync(path);
      } catch {
        return "";
      }
    }).join("");
  }
}

async function withWriter(body: (writer: Writer) => Promise<void>): Promise<void> {
  const dir = await Deno.makeTempDir();
  try {
    await body(new Writer(`${dir}/trainer.rank0.gen1.log`));
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

/** Of words whose characters take one to four bytes, some longer than what is read at once. */
const line = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.string({ unit: fc.constantFrom("a", "é", "€", "😀", " "), maxLength: 20 }),
  },
  {
    weight: 1,
    arbitrary: fc.integer({ min: 1, max: 150_000 }).map((length) => "é".repeat(length)),
  },
);
const step = fc.oneof(
  { weight: 6, arbitrary: line.map((text) => ({ add: `${text}\n` })) },
  { weight: 2, arbitrary: fc.constant({ add: "no end yet" }) },
  { weight: 2, arbitrary: fc.constant({ add: "\n" }) },
  { weight: 2, arbitrary: fc.constant("turn over" as const) },
  { weight: 3, arbitrary: fc.constant("look" as const) },
);

Deno.test("lastLines() gives the last lines of what is left, wherever the log was turned over", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 30 }),
      fc.integer({ min: 1, max: 12 }),
      (steps, count) =>
        withWriter(async (writer) => {
          for (const one of steps) {
            if (one === "turn over") {
              writer.turnOver();
            } else if (one !== "look") {
              writer.add(one.add);
            }
            deepStrictEqual(
              await lastLines(writer.path, count),
              writer.kept.trimEnd().split("\n").slice(-count),
            );
          }
        }),
    ),
    {
      numRuns: 60,
      examples: [[[{ add: "no end yet" }, "turn over", { add: "\n" }, { add: "\n" }], 1]],
    },
  ));

Deno.test("FollowedLog gives every line once, in order, however often the log was turned over between two looks", () =>
  fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), (steps) =>
      withWriter(async (writer) => {
        const log = new FollowedLog(writer.path);
        const seen: string[] = [];
        const look = async () => void seen.push(...await Array.fromAsync(log.added()));
        let turned = 0; // Since the last look: a third one removes what may not have been read.
        for (const one of steps) {
          if (one === "look") [turned] = [0, await look()];
          else if (one !== "turn over") writer.add(one.add);
          else if (writer.written.endsWith("\n") && turned++ < KEPT) writer.turnOver();
        }
        writer.add("\n");
        await look();
        await look();
        deepStrictEqual(seen, writer.written.slice(0, -1).split("\n"));
      })),
    { numRuns: 100 },
  ));

Deno.test("lastLines() of a log of gigabytes reads its end, and a line without end does not fill the memory", () =>
  withWriter(async (writer) => {
    const sparse = await Deno.open(writer.path, { write: true });
    await sparse.truncate(8 * 2 ** 30);
    sparse.close();
    writer.add("\nthe last\n");
    strictEqual((await lastLines(writer.path, 1))[0], "the last");
    strictEqual((await lastLines(writer.path, 5)).at(-1), "the last");
  }));

Deno.test("older parts of a log are parts, no logs of their own", () => {
  deepStrictEqual(
    ["a.log", "a.log.1", "a.log.22", "agent.1.log", "x.flight.rank0"].filter(isNewestPart),
    [
      "a.log",
      "agent.1.log",
      "x.flight.rank0",
    ],
  );
});
