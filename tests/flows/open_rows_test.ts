import { deepStrictEqual, rejects } from "node:assert/strict";
import { FLOWS, parseConfig } from "../../configs/mod.ts";
import { chatOf } from "../../data/mod.ts";
import { flowDefinition } from "../../flows/mod.ts";

const DIR = decodeURIComponent(new URL("../configs/bad", import.meta.url).pathname);
const SFT = `flow: supervised
rounds: 1
rows_per_round: 1
data: { train: rows.jsonl }
`;
const load = (model: string) => parseConfig(`${SFT}model: ${model}\n`, { file: `${DIR}/x.yaml` });

/** The inputs of the stages that open rows. */
function opened(config: Parameters<typeof chatOf>[0] & { flow: keyof typeof FLOWS }): string[] {
  const { nodes } = flowDefinition(config.flow).build(config as never);
  return nodes.flatMap((node) =>
    node.kind === "stage" && node.name === "open_data" ? [JSON.stringify(node.wiring)] : []
  );
}

Deno.test("a new run renders chats with the template arguments of its model", async () => {
  const { config } = await load("{ path: model, template_arguments: { enable_thinking: false } }");
  deepStrictEqual(opened(config), [
    '{"split":"train","chat":{"template_arguments":{"enable_thinking":false}}}',
  ]);
  deepStrictEqual(opened((await load("{ path: model }")).config), [
    '{"split":"train","chat":{"template_arguments":{}}}',
  ]);
});

Deno.test("arguments that the worker itself gives to a template are refused", async () => {
  await rejects(
    load("{ path: model, template_arguments: { tokenize: true } }"),
    /model\.template_arguments/,
  );
});
