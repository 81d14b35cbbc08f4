import { match, ok, strictEqual } from "node:assert/strict";
import { join } from "node:path";
import { ManualClock } from "../../../engine/mod.ts";
import { placeOf } from "../../../workers/environments/create_once.ts";
import { Creation } from "../../../workers/environments/creation.ts";
import { PYTHON, withHome } from "../fixtures.ts";

Deno.test("a long step says every five seconds what it does, until it has ended", () =>
  withHome(async (home) => {
    const clock = new ManualClock();
    const lines: string[] = [];
    const place = placeOf(home, { name: "kind", text: "", python: PYTHON });
    const creation = new Creation(place, {
      clock,
      onProgress: ({ text, passing }) => void lines.push(`${passing} ${text}`),
    });
    const fifo = join(home, "fifo");
    await new Deno.Command("mkfifo", { args: [fifo] }).output();
    let doing = "resting";
    const step = creation.must("the step", [
      "sh",
      "-c",
      `echo started; read line < '${fifo}'; echo "$line"`,
    ], {
      doing: () => doing,
      onLine: (line) => void (doing = line),
    });
    for (const times of [1, 2]) {
      await clock.untilSleeping();
      await clock.advance(5_000);
      strictEqual(lines.length, times);
    }
    await Deno.writeTextFile(fifo, "done\n");
    await step;
    await clock.advance(60_000);
    strictEqual(lines.length, 2);
    ok(
      lines.every((text) =>
        /^true Python environment 'kind': (resting|started), (5|10) s$/.test(text)
      ),
      lines.join("\n"),
    );
    match(await Deno.readTextFile(`${place.path}.log`), /^\$ sh -c .*\nstarted\ndone\n$/s);
  }));

Deno.test("a failed step says its cause, and the fix that belongs to it", () =>
  withHome((home) => {
    const creation = new Creation(placeOf(home, { name: "kind", text: "", python: PYTHON }), {});
    const headOf = (...lines: string[]) =>
      creation.failure("the step", { success: false, code: 1, lines }).message.split("\n")[0]!;
    const cases: [string[], RegExp][] = [
      [
        [
          "error: Failed to fetch: https://x",
          "  cause: error sending request",
          "  cause: dns error",
        ],
        /failed: error: Failed to fetch: https:\/\/x \(dns error\)\. Fix: check the network/,
      ],
      [
        [
          "WARNING: Retrying: SSLCertVerificationError",
          "ERROR: No matching distribution found for uv==1",
        ],
        /No matching distribution.*Fix: if your network uses its own certificates/,
      ],
      [
        ["error: Failed to download `a`", "  cause: Hash mismatch for `a`"],
        /\(Hash mismatch for `a`\)\. Fix: your package index serves files that differ/,
      ],
      [
        ["error: write failed", "  cause: No space left on device (os error 28)"],
        /Fix: free some space/,
      ],
      [
        ["The virtual environment was not created because ensurepip is not available."],
        /ensurepip is not available.*Fix: install Python's venv module/,
      ],
      [
        ["Segmentation fault"],
        /because the step failed: Segmentation fault\. Fix: read the log/,
      ],
      [[], /no output/],
    ];
    for (const [lines, head] of cases) match(headOf(...lines), head);
    return Promise.resolve();
  }));
