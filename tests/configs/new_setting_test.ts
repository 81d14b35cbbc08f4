/**
 * Adding a setting: one file, its declaration. Everything else that knows it is generated or reads
 * the declaration, down to the process that it is sent to.
 */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { copyTree, denoIn, differing } from "../copy_tree.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const DECLARED = "workers/trainer/trainer_config.ts";

/** Of each process of a trainer, and so of the numerics of nothing. */
const SETTING = `export const TrainerProcess = z.strictObject({
  warm_tokens: z.int().positive().default(64).describe("Tokens of the first batch.")
    .register(setting, { unit: "tokens", resume: "workers" }),
`;

const GENERATED = [
  "configs/holdfast.schema.json",
  "docs/settings.md",
  "workers/python/holdfast_worker/wire/types.py",
];

const CHECKS: Record<string, string[]> = {
  "types are right": ["check", "--quiet", "workers/mod.ts"],
  "changed alone, it reaches a worker": [
    "test",
    "-A",
    "--quiet",
    "--no-check",
    "--filter",
    "/every setting of preference, changed alone/",
    "tests/flows/settings_reach_workers_test.ts",
  ],
  "schema, page, fork and resume know it": [
    "test",
    "-A",
    "--quiet",
    "--no-check",
    ...["json_schema", "settings/settings_page", "settings/changed_settings"].map((name) =>
      `tests/configs/${name}_test.ts`
    ),
    "tests/runs/forks/fixed_by_prefix_test.ts",
  ],
};

Deno.test("a setting of the trainer's processes is one file: the rest is generated", async (t) => {
  const dir = `${await Deno.makeTempDir({ prefix: "holdfast-setting-" })}/`;
  try {
    await copyTree(ROOT, dir);
    const text = await Deno.readTextFile(`${ROOT}${DECLARED}`);
    const head = SETTING.split("\n")[0]!;
    strictEqual(text.split(head).length, 2, "the processes' settings are declared once");
    await Deno.writeTextFile(`${dir}${DECLARED}`, text.replace(`${head}\n`, SETTING));
    deepStrictEqual(await differing(ROOT, dir), [DECLARED]);
    const generated = await denoIn(dir, ["run", "-A", "docs/generate/write_schemas.ts"]);
    ok(generated.ok, generated.output);
    deepStrictEqual(await differing(ROOT, dir), [...GENERATED, DECLARED].sort());
    for (const [what, args] of Object.entries(CHECKS)) {
      await t.step(what, async () => {
        const { ok: good, output } = await denoIn(dir, args);
        ok(good && !output.includes("| 0 passed"), output);
      });
    }
    await t.step("Python's specification has it, with its type and no default", async () => {
      const code = "from msgspec.structs import fields\n" +
        "from holdfast_worker.wire.types import TrainerSpec\n" +
        "found = [field for field in fields(TrainerSpec) if field.name == 'warm_tokens']\n" +
        "print([(field.type.__name__, field.required) for field in found])";
      const python = new Deno.Command(Deno.env.get("HOLDFAST_TEST_PYTHON")!, {
        args: ["-c", code],
        env: { PYTHONPATH: `${dir}workers/python` },
      });
      const { stdout } = await python.output();
      strictEqual(new TextDecoder().decode(stdout), "[('int', True)]\n");
    });
    await t.step("the page says what it does on resume", async () => {
      const page = await Deno.readTextFile(`${dir}docs/settings.md`);
      ok(page.includes("| `trainer.warm_tokens` | `64` | tokens |  | yes |  |"), page);
    });
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
