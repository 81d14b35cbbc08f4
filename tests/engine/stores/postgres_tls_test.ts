/** A real server with a certificate of a private authority, over the real driver. */
import { match, ok, rejects } from "node:assert/strict";
import { InvalidInputError, PostgresStore } from "../../../engine/mod.ts";
import { POSTGRES_MISSING } from "../../postgres.ts";
import { PostgresCluster } from "../../postgres_cluster.ts";

const ignore = POSTGRES_MISSING !== null;

const CERTIFICATES = `set -e
openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=test -days 2 \\
  -addext basicConstraints=critical,CA:TRUE
openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost
printf subjectAltName=DNS:localhost >names
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial \\
  -out server.pem -days 2 -extfile names
chmod 755 . && chmod 600 server.key && if [ "$(id -u)" = 0 ]; then chown postgres server.key; fi`;

/** A directory with `ca.pem`, and with `server.pem` for `localhost` which it signed. */
async function certificates(): Promise<string> {
  const dir = await Deno.makeTempDir();
  const { success, stderr } = await new Deno.Command("/bin/sh", {
    args: ["-c", CERTIFICATES],
    cwd: dir,
  }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return dir;
}

async function answers(url: string): Promise<void> {
  const store = new PostgresStore(url, { patience_ms: 2000 });
  try {
    await store.heads();
  } finally {
    await store.close();
  }
}

async function refuses(url: string, says: RegExp): Promise<void> {
  await rejects(answers(url), (error) => {
    ok(error instanceof InvalidInputError, `${error}`);
    match(error.message, says);
    return true;
  });
}

Deno.test({
  name: "verify-full takes a server that its authority signed for that host, and no other",
  ignore,
  async fn() {
    const dir = await certificates();
    const files = {
      ssl: "on",
      ssl_cert_file: `${dir}/server.pem`,
      ssl_key_file: `${dir}/server.key`,
    };
    const cluster = await PostgresCluster.start(files);
    const at = (host: string, how: string) =>
      `postgres://postgres@${host}:${cluster.port}/postgres?${how}`;
    const trusted = `sslmode=verify-full&sslrootcert=${dir}/ca.pem`;
    try {
      await answers(at("localhost", trusted));
      await answers(at("localhost", "sslmode=require"));
      // Signed for another name.
      await refuses(at("127.0.0.1", trusted), /does not prove that it is the host/);
      // By a stranger.
      await refuses(
        at("localhost", "sslmode=verify-full"),
        /Name the authority that signed it with sslrootcert/,
      );
      await refuses(
        at("localhost", `sslmode=verify-full&sslrootcert=${dir}/none`),
        /sslrootcert cannot be read/,
      );
    } finally {
      await cluster.dispose();
      await Deno.remove(dir, { recursive: true });
    }
  },
});

Deno.test("a server without TLS is refused immediately if the URL requires TLS", async () => {
  const server = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serving = (async () => {
    for await (const connection of server) {
      await connection.read(new Uint8Array(8)); // SSLRequest
      await connection.write(new TextEncoder().encode("N"));
      await connection.read(new Uint8Array(1024)).catch(() => {});
      connection.close();
    }
  })();
  try {
    await refuses(
      `postgres://127.0.0.1:${server.addr.port}/d?sslmode=require`,
      /has no TLS.*Fix: /,
    );
  } finally {
    server.close();
    await serving;
  }
});
