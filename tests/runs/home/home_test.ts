import { deepStrictEqual, match, strictEqual, throws } from "node:assert/strict";
import { Home } from "../../../runs/mod.ts";
import { takeHome } from "../../../runs/home/home_directory.ts";
import { scratch } from "../../flows/fixtures.ts";

const modeOf = (path: string) => (Deno.statSync(path).mode! & 0o777).toString(8);

async function withDir(body: (dir: string) => void | Promise<void>): Promise<void> {
  const dir = await scratch();
  const umask = Deno.umask(0o022);
  try {
    await body(dir);
  } finally {
    Deno.umask(umask);
    await Deno.remove(dir, { recursive: true });
  }
}

const PARTS = ["runs", "artifacts", "checkpoints", "logs"];

Deno.test("Home.open() makes a home that is private to its owner", () =>
  withDir(async (dir) => {
    const home = Home.open(`${dir}/new/home`);
    const { sha256, bytes } = await home.artifacts.putJson({ row: "a prompt" });
    Deno.mkdirSync(home.runDir("a"));
    home.writeFact("a", { name: "metrics.json", value: {} });
    deepStrictEqual(
      ["", "/runs", "/artifacts", "/checkpoints", "/logs"].map((name) => modeOf(home.dir + name)),
      [
        ...Array(5).fill("700"),
      ],
    );
    strictEqual(modeOf(`${dir}/new`), "755"); // Not ours: only the way there.
    const files = ["holdfast.db", "holdfast.db-wal", "holdfast.db-shm", "runs/a/metrics.json"];
    for (const name of files) strictEqual(modeOf(`${home.dir}/${name}`), "600", name);
    strictEqual(modeOf(home.artifacts.path({ sha256, bytes })), "600");
    await home.close();
  }));

Deno.test("Home.open() closes once what other users could read", () =>
  withDir(async (dir) => {
    const [home, elsewhere] = [`${dir}/home`, `${dir}/elsewhere`];
    for (const name of ["", "/runs", "/artifacts", "/logs"]) Deno.mkdirSync(home + name);
    Deno.writeTextFileSync(`${home}/holdfast.db`, "");
    Deno.mkdirSync(elsewhere);
    Deno.symlinkSync(elsewhere, `${home}/checkpoints`);
    const notices: string[] = [];
    for (let i = 0; i < 2; i++) {
      await Home.open(home, { onNotice: (text) => notices.push(text) }).close();
    }
    strictEqual(notices.length, 1);
    match(
      notices[0]!,
      /home: other users could read runs, artifacts, logs, holdfast\.db\. Now only you can/,
    );
    deepStrictEqual(PARTS.map((name) => modeOf(`${home}/${name}`)), ["700", "700", "755", "700"]);
    strictEqual(modeOf(`${home}/holdfast.db`), "600");
    strictEqual(modeOf(home), "755"); // Others may not change it, and what is in it is closed.
  }));

Deno.test("Home.open() leaves a directory that may only be passed through", () =>
  withDir(async (dir) => {
    const home = `${dir}/home`;
    await Home.open(home).close();
    for (const name of ["", "/runs"]) Deno.chmodSync(home + name, 0o711);
    const notices: string[] = [];
    await Home.open(home, { onNotice: (text) => notices.push(text) }).close();
    deepStrictEqual([modeOf(home), modeOf(`${home}/runs`), notices], ["711", "711", []]);
  }));

Deno.test("Home.open() opens a home whose checkpoint disk is missing", () =>
  withDir(async (dir) => {
    Deno.mkdirSync(`${dir}/home`);
    Deno.symlinkSync(`${dir}/not mounted`, `${dir}/home/checkpoints`);
    await Home.open(`${dir}/home`).close();
  }));

Deno.test("Home.open() refuses no directory and the root of the file system", () => {
  const fix = "give the directory of your runs with --home, such as .holdfast";
  for (const dir of ["", " "]) {
    throws(() => Home.open(dir), {
      code: "invalid_input",
      message: `Cannot use '${dir}' as the home because it names no directory. Fix: ${fix}`,
    });
  }
  for (const dir of ["/", "//", "/tmp/.."]) {
    throws(() => Home.open(dir), {
      code: "invalid_input",
      message: `Cannot use '/' as the home because it is the root of the file system. Fix: ${fix}`,
    });
  }
});

Deno.test("Home.open() takes an own home or empty directory from others who may write to it", () =>
  withDir(async (dir) => {
    for (const [name, mode] of [["empty", 0o777], ["home", 0o770], ["shared", 0o1777]] as const) {
      const home = `${dir}/${name}`;
      if (name === "home") await Home.open(home).close();
      else Deno.mkdirSync(home);
      Deno.chmodSync(home, mode);
      const notices: string[] = [];
      for (let i = 0; i < 2; i++) {
        await Home.open(home, { onNotice: (text) => notices.push(text) }).close();
      }
      strictEqual(modeOf(home), (mode & 0o755).toString(8));
      strictEqual(notices.length, 1);
      match(notices[0]!, /other users could write to it. Now only you can \(chmod go-w\)$/);
    }
  }));

Deno.test("Home.open() refuses a directory with other files that others may write to", () =>
  withDir((dir) => {
    Deno.writeTextFileSync(`${dir}/somebody's`, "");
    Deno.chmodSync(dir, 0o777);
    throws(() => Home.open(dir), {
      code: "invalid_input",
      message:
        `Cannot use '${dir}' as the home because other users can write to it, and a resume ` +
        `runs what its record names. Fix: chmod go-w '${dir}', or name a new directory in it with ` +
        `--home '${dir}/holdfast'`,
    });
    deepStrictEqual([modeOf(dir), [...Deno.readDirSync(dir)].length], ["777", 1]);
  }));

const NOBODY = 65_534;

for (const [user, fix] of [[NOBODY, ""], [0, "chmod go-w 'DIR', or "]] as const) {
  Deno.test(`takeHome() names a fix that user ${user} may apply to a group's directory of another user`, () =>
    withDir(async (dir) => {
      Deno.chmodSync(dir, 0o2775); // As a volume whose group may write.
      const uidOf = (path: string) => path === Deno.realPathSync(dir) ? NOBODY - 1 : undefined;
      throws(() => takeHome(dir, { uidOf, user }), (error: Error) => {
        const wanted = `Fix: ${fix.replace("DIR", dir)}name a new directory in it with --home '`;
        return error.message.endsWith(`${wanted}${dir}/holdfast'`);
      });
      await Home.open(`${dir}/holdfast`).close();
      strictEqual(Deno.statSync(`${dir}/holdfast`).mode! & 0o777, 0o700);
    }));
}

for (const name of ["holdfast.db", "holdfast.db-wal", "nonce", "checkpoints"]) {
  Deno.test(`takeHome() refuses a home in which ${name} belongs to a different user`, () =>
    withDir(async (dir) => {
      await Deno.writeTextFile(`${dir}/holdfast.db`, "");
      Deno.chmodSync(dir, 0o777);
      const uidOf = (path: string) => path === `${dir}/${name}` ? NOBODY : Deno.uid()!;
      throws(() => takeHome(dir, { uidOf }), {
        code: "invalid_input",
        message:
          `Cannot use '${dir}' as the home because ${name} in it belongs to user ${NOBODY}, ` +
          `and a resume runs what its record names. Fix: name a new directory with --home; if you ` +
          `trust that user, chown '${dir}/${name}'`,
      });
      strictEqual(modeOf(dir), "777"); // The next opening refuses too.
    }));
}

Deno.test("takeHome() takes files of root, of the home's owner, and of users who own nothing of a home", () =>
  withDir((dir) => {
    for (const [home, file] of [[NOBODY, NOBODY], [Deno.uid()!, 0], [NOBODY, Deno.uid()!]]) {
      const uidOf = (path: string) => path === dir ? home! : path.endsWith("notes") ? 7 : file!;
      strictEqual(takeHome(dir, { uidOf }), false);
    }
  }));
