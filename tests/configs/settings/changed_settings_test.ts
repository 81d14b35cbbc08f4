import { deepStrictEqual } from "node:assert/strict";
import { z } from "zod";
import { changeable, settingChanges, withoutSettings, withSettings } from "../../../configs/mod.ts";
import { setting } from "../../../data/mod.ts";

const limit = z.number().nullable().optional().register(setting, { resume: "stages" }).describe(
  "D",
);
const Block = z.strictObject({
  port: z.int().default(0),
  devices: z.array(z.int()).nullable().default(null),
}).register(setting, { resume: "workers" });
const Kind = z.discriminatedUnion("name", [
  z.strictObject({ name: z.literal("a"), limit }),
  z.strictObject({ name: z.literal("b"), limit, text: z.string().default("") }),
]);
const Whole = z.strictObject({
  seed: z.int().default(0),
  block: Block.prefault({}).describe("D"),
  kinds: z.array(Kind),
});
type Whole = z.infer<typeof Whole>;

const FROM = Whole.parse({ kinds: [{ name: "a" }, { name: "b", limit: 1 }] });
const changes = (to: Partial<Whole>) =>
  settingChanges(Whole, { from: FROM, to: Whole.parse({ ...FROM, ...to }) });

Deno.test("settingChanges() names each setting that differs, and who reads it if a resume may change it", () => {
  deepStrictEqual(changes({}), []);
  deepStrictEqual(changes({ seed: 1, block: { port: 3, devices: [1, 0] } }), [
    { path: "block.devices", read_by: "workers", from: null, to: [1, 0] },
    { path: "block.port", read_by: "workers", from: 0, to: 3 },
    { path: "seed", read_by: null, from: 0, to: 1 },
  ]);
  deepStrictEqual(changes({ kinds: [{ name: "a", limit: 2 }, { name: "b", text: "x" }] }), [
    { path: "kinds.0.limit", read_by: "stages", to: 2 },
    { path: "kinds.1.limit", read_by: "stages", from: 1 },
    { path: "kinds.1.text", read_by: null, from: "", to: "x" },
  ]);
});

Deno.test("settingChanges() takes a list of another length, or another option of a union, for one setting that is fixed", () => {
  deepStrictEqual(changes({ kinds: [{ name: "a" }] }).map(({ path, read_by }) => [path, read_by]), [
    ["kinds", null],
  ]);
  const other = changes({ kinds: [{ name: "a" }, { name: "a", limit: 1 }] });
  deepStrictEqual(other.map(({ path, read_by }) => [path, read_by]), [["kinds.1", null]]);
});

Deno.test("changes are made and unmade, also where a setting was not said", () => {
  const to = Whole.parse({
    ...FROM,
    block: { port: 3 },
    kinds: [{ name: "a", limit: 2 }, { name: "b" }],
  });
  const changes = settingChanges(Whole, { from: FROM, to }).flatMap(({ read_by, ...rest }) =>
    read_by === null ? [] : [{ ...rest, read_by }]
  );
  deepStrictEqual(Whole.parse(withSettings(FROM, changes)), {
    ...to,
    kinds: [to.kinds[0], { ...to.kinds[1], limit: undefined }],
  });
  deepStrictEqual(settingChanges(Whole, { from: withoutSettings(to, changes), to: FROM }), []);
});

Deno.test("changeable() lists what a schema declares, below blocks and in the options of lists", () => {
  deepStrictEqual(changeable(Whole), [
    { path: "block.port", read_by: "workers" },
    { path: "block.devices", read_by: "workers" },
    { path: "kinds.*.limit", read_by: "stages" },
  ]);
});
