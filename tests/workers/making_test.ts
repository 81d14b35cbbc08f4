import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { join } from "node:path";
import { ManualClock } from "../../engine/mod.ts";
import { InstallProgress } from "../../workers/install_progress.ts";
import { placeOf } from "../../workers/made_once.ts";
import { Making } from "../../workers/making.ts";
import { withHome } from "./fixtures.ts";

Deno.test("InstallProgress says what uv is doing, from the lines that uv writes", () => {
  const progress = new InstallProgress();
  const after = (line: string) => {
    progress.take(line);
    return progress.text();
  };
  strictEqual(progress.text(), "looking up the packages");
  deepStrictEqual(
    [
      "Using Python 3.11.7 environment at: t",
      "Resolved 51 packages in 1.18s",
      "Downloading torch (182.9MiB)",
      "   Building deepspeed==0.19.8",
      "Downloading numpy (16.1MiB)",
      "Downloading sympy (6.0MiB)",
      "Downloading hf-xet (4.1MiB)",
      " Downloaded torch",
      "      Built deepspeed==0.19.8",
      " Downloaded numpy",
      " Downloaded sympy",
      "Prepared 51 packages in 10.88s",
      "Installed 51 packages in 1.48s",
      "Bytecode compiled 9792 files in 21.2s",
      " + torch==2.13.0+cpu",
    ].map(after),
    [
      "looking up the packages",
      "fetching 51 packages",
      "downloading torch (182.9 MiB)",
      "downloading torch (182.9 MiB); building deepspeed",
      "downloading torch (182.9 MiB), numpy (16.1 MiB); building deepspeed",
      "downloading torch (182.9 MiB), numpy (16.1 MiB), sympy (6.0 MiB); building deepspeed",
      "downloading torch (182.9 MiB), numpy (16.1 MiB), sympy (6.0 MiB) and 1 more; building deepspeed",
      "downloading numpy (16.1 MiB), sympy (6.0 MiB), hf-xet (4.1 MiB); building deepspeed",
      "downloading numpy (16.1 MiB), sympy (6.0 MiB), hf-xet (4.1 MiB)",
      "downloading sympy (6.0 MiB), hf-xet (4.1 MiB)",
      "downloading hf-xet (4.1 MiB)",
      "installing 51 packages",
      "compiling the modules of 51 packages",
      "compiling the modules of 51 packages",
      "compiling the modules of 51 packages",
    ],
  );
});

Deno.test("a step that lasts says every five seconds what it is at, and for how long, and no more once it has ended", () =>
  withHome(async (home) => {
    const clock = new ManualClock();
    const said: string[] = [];
    await Deno.mkdir(join(home, "env"));
    const place = placeOf(home, { name: "kind", text: "" });
    const making = new Making(place, {
      clock,
      onProgress: ({ text, passing }) => void said.push(`${passing} ${text}`),
    });
    const fifo = join(home, "fifo");
    await new Deno.Command("mkfifo", { args: [fifo] }).output();
    let doing = "resting";
    const step = making.must("the step", ["sh", "-c", `echo started; read line < '${fifo}'; echo "$line"`], {
      ...{ doing: () => doing, onLine: (line) => void (doing = line) },
    });
    for (const times of [1, 2]) {
      await clock.untilSleeping();
      await clock.advance(5_000);
      strictEqual(said.length, times);
    }
    await Deno.writeTextFile(fifo, "done\n");
    await step;
    await clock.advance(60_000);
    strictEqual(said.length, 2);
    ok(
      said.every((text) => /^true Python environment 'kind': (resting|started), (5|10) s$/.test(text)),
      said.join("\n"),
    );
    match(await Deno.readTextFile(`${place.path}.log`), /^\$ sh -c .*\nstarted\ndone\n$/s);
  }));

Deno.test("a failed step says its cause, and the fix that belongs to it", () =>
  withHome(async (home) => {
    await Deno.mkdir(join(home, "env"));
    const making = new Making(placeOf(home, { name: "kind", text: "" }), {});
    const headOf = (...lines: string[]) =>
      making.failure("the step", { success: false, code: 1, lines }).message.split("\n")[0]!;
    const cases: [string[], RegExp][] = [
      [
        ["error: Failed to fetch: https://x", "  cause: error sending request", "  cause: dns error"],
        /because the step failed: error: Failed to fetch: https:\/\/x \(dns error\)\. Fix: check the network/,
      ],
      [
        ["WARNING: Retrying: SSLCertVerificationError", "ERROR: No matching distribution found for uv==1"],
        /No matching distribution.*Fix: if your network has its own certificates/,
      ],
      [
        ["error: Failed to download `a`", "  cause: Hash mismatch for `a`"],
        /\(Hash mismatch for `a`\)\. Fix: your package index serves other files/,
      ],
      [["error: write failed", "  cause: No space left on device (os error 28)"], /Fix: free some space/],
      [
        ["The virtual environment was not created successfully because ensurepip is not available."],
        /ensurepip is not available.*Fix: install Python's venv module/,
      ],
      [["Segmentation fault"], /because the step failed: Segmentation fault\. Fix: look at the log/],
      [[], /no output/],
    ];
    for (const [lines, head] of cases) match(headOf(...lines), head);
  }));
