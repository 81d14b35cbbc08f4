import { deepStrictEqual, ok, strictEqual, throws } from "node:assert/strict";
import fc from "fast-check";
import { InvalidInputError } from "../../../engine/mod.ts";
import { parsePostgresUrl } from "../../../engine/stores/postgres_address.ts";

/** The sentence that refuses it; null: it is taken. */
function refusal(url: string): string | null {
  try {
    parsePostgresUrl(url);
    return null;
  } catch (error) {
    // Whatever else it is, it comes with a stack trace.
    ok(error instanceof InvalidInputError, `${error}`);
    return error.message;
  }
}

Deno.test("a PostgreSQL URL is read in its usual forms, and shown without its password", () => {
  const { text, url: again, ...address } = parsePostgresUrl(
    "postgresql://me:p%40ss@db.example:6432/runs?sslmode=verify-full" +
      "&sslrootcert=/etc/ca.pem&schema=mine",
  );
  deepStrictEqual(address, {
    host: "db.example",
    port: 6432,
    user: "me",
    password: "p@ss",
    database: "runs",
    tls: "verify-full",
    root_certificates: "/etc/ca.pem",
    schema: "mine",
  });
  strictEqual(text, "postgres://me@db.example:6432/runs");
  strictEqual(
    again,
    "postgresql://me:PASSWORD@db.example:6432/runs?sslmode=verify-full" +
      "&sslrootcert=/etc/ca.pem&schema=mine",
  );
  strictEqual(
    parsePostgresUrl("postgres:///runs?host=/var/run/postgresql").host,
    "/var/run/postgresql",
  );
  strictEqual(parsePostgresUrl("postgres://[::1]:5433/runs").host, "::1");
  const wrong = [
    "mysql://me:s3cret@h/d",
    "postgres://me:s3cret@x:y/:z",
    "s3cret",
    "postgres://h/d?schema=A;s3cret",
  ];
  for (
    const url of [...wrong, "postgres://h/d?synchronous_commit=off", "postgres://h/d?sslmode=maybe"]
  ) {
    throws(() => parsePostgresUrl(url), (error) => {
      ok(
        error instanceof InvalidInputError &&
          /^Cannot use the store's URL because /.test(error.message),
      );
      ok(!/me:s3cret/.test(error.message), error.message);
      return true;
    });
  }
});

Deno.test("any text in a PostgreSQL URL is read, or refused without the password", () => {
  const part = fc.stringMatching(/^[a-z0-9%#@:/?&=+ é]{1,12}$/);
  fc.assert(
    fc.property(part, part, part, (user, password, database) => {
      const secret = `s3cret${password}`;
      const url = `postgres://${user}:${secret}@localhost/${database}`;
      const text = refusal(url) ??
        `Cannot use the store's URL because it is ${parsePostgresUrl(url).text}`;
      ok(text.startsWith("Cannot use the store's URL because ") && !text.includes("s3cret"), text);
      if (refusal(url) === null) {
        ok(!parsePostgresUrl(url).url.includes("s3cret"), parsePostgresUrl(url).url);
      }
      // Written as the sentence says, every text is read as it was meant.
      const read = parsePostgresUrl(
        `postgres://${[user, secret].map(encodeURIComponent).join(":")}@localhost/d`,
      );
      deepStrictEqual([read.user, read.password, read.host], [user, secret, "localhost"]);
    }),
    { numRuns: 1000 },
  );
  ok(refusal("postgres://me:50%off@localhost/d")!.includes("%25"));
  ok(refusal("postgres://me:12#34@localhost/d")!.includes("%23")); // It was host 'me', port 12.
});

Deno.test("a store on a different host is encrypted unless the URL says otherwise", () => {
  const HERE = [
    "localhost",
    "127.0.0.1",
    "127.1.2.3",
    "[::1]",
    "",
    "?host=/var/run/postgresql",
    "?host=LOCALHOST",
  ];
  const AWAY = [
    "db.example",
    "10.0.0.5",
    "[2001:db8::1]",
    "127.0.0.1.example",
    "?host=db.example",
    "localhost.example",
  ];
  const at = (host: string, more: string) =>
    host.startsWith("?") ? `postgres:///d${host}&${more}` : `postgres://${host}/d?${more}`;
  for (const host of HERE) {
    strictEqual(parsePostgresUrl(at(host, "schema=a")).tls, "prefer", host);
    for (const tls of ["disable", "prefer", "require", "verify-full"]) {
      strictEqual(parsePostgresUrl(at(host, `sslmode=${tls}`)).tls, tls, host);
    }
  }
  for (const host of AWAY) {
    strictEqual(parsePostgresUrl(at(host, "schema=a")).tls, "require", host);
    for (const tls of ["disable", "prefer"]) {
      ok(/unencrypted=yes/.test(refusal(at(host, `sslmode=${tls}`))!), host);
      strictEqual(parsePostgresUrl(at(host, `sslmode=${tls}&unencrypted=yes`)).tls, tls);
    }
  }
  ok(/only 'yes'/.test(refusal("postgres://db.example/d?sslmode=disable&unencrypted=no")!));
  ok(/verify-full/.test(refusal("postgres://db.example/d?sslmode=require&sslrootcert=/ca.pem")!));
});
