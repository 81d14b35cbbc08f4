import { dropoutOf, headOf, inPython, titleOf } from "../../algs/mod.ts";
import type { Issue } from "../problems/issue_text.ts";
import type { Blocks } from "./rule_blocks.ts";

/** Rules about how training fits in memory. A setting without effect is refused, never ignored. */
export const MEMORY_RULES = [
  offloadIsDeepSpeeds,
  packingIsTheVocabularys,
  dropoutIsSupervised,
  adaptersFit,
];

function offloadIsDeepSpeeds({ trainer }: Blocks): Issue[] {
  if (!trainer?.offload) return [];
  const { engine, zero, offload } = trainer;
  const sharded = engine === "deepspeed" ? zero : 0;
  const issue = (field: string, least: string): Issue => ({
    path: ["trainer", "offload", field],
    message:
      `is true, and ${
        engine === "torch" ? "the torch engine has" : `ZeRO ${zero} has`
      } nothing to offload: ` +
      `set trainer.engine: deepspeed and trainer.zero: ${least}`,
  });
  return [
    ...(offload.optimizer && sharded === 0 ? [issue("optimizer", "1, 2 or 3")] : []),
    ...(offload.parameters && sharded !== 3 ? [issue("parameters", "3")] : []),
  ];
}

function packingIsTheVocabularys({ trainer, algorithm }: Blocks): Issue[] {
  const headed = headedOf(algorithm);
  if (!trainer?.packing || headed === null) return [];
  return [{
    path: ["trainer", "packing"],
    message:
      `is true; the rows of ${headed}, whose model has a separate head, are padded: leave it out`,
  }];
}

function dropoutIsSupervised({ flow, trainer, algorithm }: Blocks): Issue[] {
  if (!trainer) return [];
  const allowed = flow === "supervised" &&
    (algorithm === undefined || (!inPython(algorithm) && dropoutOf(algorithm)));
  const why =
    "here log-probabilities are compared with recorded ones and must not be random: use 0";
  const places: [string[], number | undefined][] = [
    [["trainer", "dropout"], trainer.dropout],
    [["trainer", "lora", "dropout"], trainer.lora?.dropout],
  ];
  return places.flatMap(([path, value]) =>
    value && !allowed ? [{ path, message: `is ${value}; ${why}` }] : []
  );
}

function adaptersFit({ trainer, algorithm }: Blocks): Issue[] {
  if (!trainer?.lora) return [];
  const headed = headedOf(algorithm);
  return [
    ...(headed !== null
      ? [{
        path: ["trainer", "lora"],
        message: `${headed} trains a separate head, which no adapter saves: leave it out`,
      }]
      : []),
    ...(trainer.lora.quantize !== null && trainer.zero === 3
      ? [{
        path: ["trainer", "lora", "quantize"],
        message: `is ${trainer.lora.quantize}; ZeRO 3 cannot shard weights of 4 bits: use ` +
          "trainer.zero 0, 1 or 2",
      }]
      : []),
  ];
}

/** The name of an algorithm whose model has a separate head instead of a vocabulary. */
function headedOf(algorithm: Blocks["algorithm"]): string | null {
  return algorithm === undefined || headOf(algorithm) === null ? null : titleOf(algorithm);
}
