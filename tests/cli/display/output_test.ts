import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { resolve } from "node:path";
import {
  command,
  completed,
  DEFAULT_HOME,
  duration,
  fixed,
  signed,
} from "../../../cli/display/output.ts";
import { ArtifactStore } from "../../../engine/mod.ts";
import { Home } from "../../../runs/mod.ts";
import { MemoryStore } from "../../../testing/mod.ts";

const SECRET = "s3cret";

/** A home at `dir`, of a PostgreSQL where a URL is given. */
function homeOf(dir: string, postgres?: string): Home {
  const options = { store: new MemoryStore(), artifacts: new ArtifactStore(`${dir}/artifacts`) };
  return new Home(dir, { ...options, ...(postgres !== undefined && { postgres }) });
}

/** What is printed while `HOLDFAST_STORE` is `url`; null: while it is not set. */
function withStore(url: string | null, print: () => string): string {
  const before = Deno.env.get("HOLDFAST_STORE");
  if (url === null) Deno.env.delete("HOLDFAST_STORE");
  else Deno.env.set("HOLDFAST_STORE", url);
  try {
    return print();
  } finally {
    if (before === undefined) Deno.env.delete("HOLDFAST_STORE");
    else Deno.env.set("HOLDFAST_STORE", before);
  }
}

const here = resolve(DEFAULT_HOME);
const LAB = `postgres://ada:${SECRET}@db.example:5433/runs?schema=lab&sslmode=require`;
const NAMED = " --store 'postgres://ada:PASSWORD@db.example:5433/runs?schema=lab&sslmode=require'";

Deno.test("a printed command reaches the run that it names: its home and its store, unless they are the defaults", () => {
  const cases = [
    { home: homeOf(here), store: null, suffix: "" },
    { home: homeOf("/a/home"), store: null, suffix: " --home /a/home" },
    { home: homeOf("/my home"), store: null, suffix: " --home '/my home'" },
    { home: homeOf(here), store: LAB, suffix: "" }, // A home that was opened with SQLite by a script.
    { home: homeOf(here, LAB), store: LAB, suffix: "" },
    { home: homeOf(here, LAB), store: null, suffix: NAMED },
    { home: homeOf(here, LAB), store: LAB.replace("/runs", "/others"), suffix: NAMED },
    { home: homeOf(here, LAB), store: LAB.replace(SECRET, "old"), suffix: NAMED },
    { home: homeOf(here, LAB), store: "no URL at all", suffix: NAMED },
    { home: homeOf("/a/home", LAB), store: null, suffix: ` --home /a/home${NAMED}` },
  ];
  for (const { home, store, suffix } of cases) {
    strictEqual(
      withStore(store, () => command(home, "resume r")),
      `deno task rl resume r${suffix}`,
    );
  }
});

Deno.test("a home that is opened with a URL names its store without the password", async () => {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-output-" });
  const home = Home.open(dir, { store: LAB });
  const shown = withStore(null, () => command(home, "show r"));
  await home.close();
  match(shown, /--store 'postgres:\/\/ada:PASSWORD@/);
  ok(!JSON.stringify(home).includes(SECRET) && !Deno.inspect(home).includes(SECRET));
  await Deno.remove(dir, { recursive: true });
});

Deno.test("next: lines of a message are completed once, and nothing else of it", () => {
  const message =
    "Cannot use deno task rl x\n  next: deno task rl fork RUN --round 2\n  next: look";
  const once = withStore(null, () => completed(message, homeOf("/a/home", LAB), "r"));
  strictEqual(
    once,
    `Cannot use deno task rl x\n  next: deno task rl fork r --round 2 --home /a/home${NAMED}\n  next: look`,
  );
  strictEqual(withStore(null, () => completed(once, homeOf("/a/home", LAB), "r")), once);
});

Deno.test("a number that rounds to zero is printed without a sign", () => {
  const values = [-0.0004, 0.0004, -0, 0.25, -0.25];
  deepStrictEqual(values.map((value) => fixed(value, 3)), [
    "0.000",
    "0.000",
    "0.000",
    "0.250",
    "-0.250",
  ]);
  deepStrictEqual(values.map((value) => signed(value, 3)), [
    "0.000",
    "0.000",
    "0.000",
    "+0.250",
    "-0.250",
  ]);
});

Deno.test("duration() says seconds as people read them", () => {
  deepStrictEqual([0, 59.6, 200, 7500].map(duration), [
    "0 s",
    "1 min 0 s",
    "3 min 20 s",
    "2 h 5 min",
  ]);
});
