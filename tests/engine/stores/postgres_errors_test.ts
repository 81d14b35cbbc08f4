import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { InfrastructureError, InvalidInputError } from "../../../engine/errors.ts";
import {
  asPostgresError,
  awayTooLong,
  isOutage,
  isPassing,
  NoAnswer,
} from "../../../engine/stores/postgres_errors.ts";

const coded = (code: string) => Object.assign(new Error(`says ${code}`), { code });

Deno.test("isPassing() knows what waiting may fix; two transactions that met are no outage", () => {
  const found = ["ECONNREFUSED", "57P01", "08006", "40P01", "28P01", "42601", ""].map((code) => [
    isPassing(coded(code)),
    isOutage(coded(code)),
  ]);
  deepStrictEqual(found, [
    [true, true],
    [true, true],
    [true, true],
    [true, false],
    [false, false],
    [false, false],
    [false, false],
  ]);
  strictEqual(isPassing(new NoAnswer("no answer")), true);
  for (const error of [null, undefined, "text", {}]) strictEqual(isPassing(error), false);
});

Deno.test("asPostgresError() says what to do; what a person must set right is bad input", () => {
  const password = asPostgresError(coded("28P01"), "open the journal", "postgres://h");
  strictEqual(password instanceof InvalidInputError, true);
  strictEqual(
    password.message,
    "Cannot open the journal in postgres://h because the server refuses the password. Fix it in " +
      "the URL or in PGPASSWORD. Nothing recorded is lost (says 28P01)",
  );
  const full = asPostgresError(coded("53100"), "append 1 rows", "postgres://h");
  strictEqual(full instanceof InfrastructureError, true);
  match(full.message, /because the server's disk is full\. Free some space there, then resume\./);
  deepStrictEqual(full.facts, { store: "postgres://h", postgres: "53100" });
});

Deno.test("asPostgresError() knows the codes of a certificate that proves nothing", () => {
  for (
    const code of [
      "CERT_HAS_EXPIRED",
      "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
      "ERR_TLS_CERT_ALTNAME_INVALID",
    ]
  ) {
    match(
      asPostgresError(coded(code), "read", "here").message,
      /Name the authority that signed it with sslrootcert/,
    );
  }
});

Deno.test("asPostgresError() of an unknown code is final, and keeps its cause", () => {
  const cause = coded("XX000");
  const error = asPostgresError(cause, "read", "here");
  strictEqual(
    error.message,
    "Cannot read in here because PostgreSQL refuses. Nothing recorded is lost (says XX000)",
  );
  strictEqual(error.retryable, false);
  strictEqual(error.cause, cause);
  strictEqual(asPostgresError(error, "write", "there"), error);
});

Deno.test("awayTooLong() can be tried again, and says for how long the server was away", () => {
  const error = awayTooLong(coded("ECONNREFUSED"), { what: "read", where: "here", ms: 61_499.6 });
  strictEqual(error.retryable, true);
  match(error.message, /^Cannot read in here because PostgreSQL has been away for 61 s \(says /);
  deepStrictEqual(error.facts, { store: "here", postgres: "ECONNREFUSED", away_ms: 61_500 });
});
