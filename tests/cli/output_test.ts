import { strictEqual } from "node:assert/strict";
import { resolve } from "node:path";
import { command, DEFAULT_HOME } from "../../cli/output.ts";
import { parsePostgresUrl } from "../../engine/mod.ts";

const given = (url: string) => parsePostgresUrl(url).url;

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

Deno.test("a printed command reaches the run that it names: its home and its store, unless they are the defaults", () => {
  const dir = resolve(DEFAULT_HOME);
  const local = given("postgres://db.example:5433/runs?schema=lab");
  const cases = [
    { home: { dir, storeUrl: null }, store: null, said: "" },
    { home: { dir: "/a/home", storeUrl: null }, store: null, said: " --home /a/home" },
    { home: { dir: "/my home", storeUrl: null }, store: null, said: " --home '/my home'" },
    {
      home: { dir, storeUrl: local },
      store: null,
      said: " --store 'postgres://db.example:5433/runs?schema=lab'",
    },
    { home: { dir, storeUrl: local }, store: "postgres://db.example:5433/runs?schema=lab", said: "" },
    {
      home: { dir, storeUrl: local },
      store: "postgres://db.example:5433/others",
      said: " --store 'postgres://db.example:5433/runs?schema=lab'",
    },
  ];
  for (const { home, store, said } of cases) {
    strictEqual(withStore(store, () => command(home, "resume r")), `deno task rl resume r${said}`);
  }
});

Deno.test("a printed command keeps all of a store's URL but its password", () => {
  const url = "postgres://ada:s%40cret@db.example/runs?sslmode=verify-full&sslrootcert=/etc/ca.pem";
  strictEqual(
    withStore(null, () => command({ dir: resolve(DEFAULT_HOME), storeUrl: given(url) }, "show r")),
    "deno task rl show r --store 'postgres://ada:PASSWORD@db.example/runs?sslmode=verify-full&sslrootcert=/etc/ca.pem'",
  );
});
