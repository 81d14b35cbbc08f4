import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { takeFromOthers } from "../../../engine/mod.ts";

async function withDirectory(body: (dir: string) => void): Promise<void> {
  const dir = await Deno.makeTempDir();
  try {
    body(dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

const modeOf = (path: string) => Deno.statSync(path).mode! & 0o777;

function fileOf(path: string, mode: number): string {
  Deno.writeTextFileSync(path, "kept");
  Deno.chmodSync(path, mode);
  return path;
}

Deno.test("takeFromOthers() closes files and directories that others may read or write", () =>
  withDirectory((dir) => {
    const paths = [0o644, 0o640, 0o602].map((mode, i) => fileOf(`${dir}/${i}`, mode));
    Deno.mkdirSync(`${dir}/folder`);
    Deno.chmodSync(`${dir}/folder`, 0o755);
    deepStrictEqual(takeFromOthers([...paths, `${dir}/folder`]), [...paths, `${dir}/folder`]);
    deepStrictEqual(paths.map(modeOf), [0o600, 0o600, 0o600]);
    strictEqual(modeOf(`${dir}/folder`), 0o700);
    strictEqual(Deno.readTextFileSync(paths[0]!), "kept");
  }));

Deno.test("takeFromOthers() leaves what shows others nothing as it is", () =>
  withDirectory((dir) => {
    const file = fileOf(`${dir}/file`, 0o400);
    Deno.mkdirSync(`${dir}/passage`);
    Deno.chmodSync(`${dir}/passage`, 0o711);
    deepStrictEqual(takeFromOthers([file, `${dir}/passage`, `${dir}/missing`]), []);
    deepStrictEqual([modeOf(file), modeOf(`${dir}/passage`)], [0o400, 0o711]);
  }));

Deno.test("takeFromOthers() follows no link", () =>
  withDirectory((dir) => {
    const target = fileOf(`${dir}/target`, 0o644);
    Deno.symlinkSync(target, `${dir}/link`);
    deepStrictEqual(takeFromOthers([`${dir}/link`]), []);
    strictEqual(modeOf(target), 0o644);
  }));
