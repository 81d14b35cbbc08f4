import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { selectRows, statements } from "../../../engine/stores/postgres_statements.ts";

const flat = (text: string) => text.replaceAll(/\s+/g, " ");

Deno.test("selectRows() of a whole run asks for its rows in order, without a limit", () => {
  const { text, values } = selectRows("a", {});
  strictEqual(
    flat(text),
    "SELECT seq, epoch, at_ms, kind, key, input_hash, value FROM journal " +
      "WHERE run_no = (SELECT no FROM runs WHERE id = $1) ORDER BY seq ASC LIMIT $2::bigint",
  );
  deepStrictEqual(values, ["a", null]);
});

Deno.test("selectRows() numbers the values of what is asked for", () => {
  const query = { kinds: ["result" as const], prefix: "round/", after_seq: 0, limit: 5 };
  const { text, values } = selectRows("a", { ...query, newest_first: true });
  match(
    flat(text),
    /AND kind = ANY \(\$3::text\[\]\) AND key >= \$4 AND key < \$5 AND seq > \$6 ORDER BY seq DESC/,
  );
  deepStrictEqual(values, ["a", 5, '{"result"}', "round/", "round/\u{10FFFF}", 0]);
});

Deno.test("a run's values never become part of a statement's text", () => {
  const { text } = selectRows("'; DROP TABLE runs", { prefix: "'; DROP", kinds: ["result"] });
  strictEqual(text.includes("DROP"), false);
});

Deno.test("every write by an owner is fenced by the run's epoch", () => {
  const { renew, remove, finish, release, reopen } = statements("now()");
  for (const statement of [renew, remove, finish, release, reopen]) {
    match(flat(statement), /id = \$1 AND epoch = \$2 AND owner IS NOT NULL/);
  }
});
