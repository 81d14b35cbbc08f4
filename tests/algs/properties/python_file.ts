import { basename } from "node:path";
import type { AlgorithmUnderTest, LossUnderTest, Variant } from "./asked_of.ts";
import type { Assigned } from "../../../algs/mod.ts";
import { INTERPRETER } from "../drivers/torch.ts";

type Source = { file: string; source: string; settings: Record<string, unknown> };
type Described = {
  settings: Record<string, unknown>;
  group_min: number;
  examples: Record<string, unknown>[];
  credit: boolean;
  losses: Record<string, { reads: string[]; pairs: boolean }>;
};

/**
 * An algorithm in a Python file under test: values and gradients are the worker's, of `EXAMPLES` of
 * the file too.
 */
export async function pythonFile(
  path: string,
): Promise<AlgorithmUnderTest & Pick<Described, "examples">> {
  const text = await Deno.readTextFile(path);
  const source = (settings: Record<string, unknown>): Source => ({
    file: basename(path),
    source: text,
    settings,
  });
  const describe = (settings: Record<string, unknown>) =>
    INTERPRETER.ask("describe_file", source(settings)) as Promise<Described>;
  const { examples, group_min } = await describe({});
  const name = basename(path);
  const make = async (settings: Record<string, unknown>) =>
    variantOf(name, source(settings), await describe(settings));
  const variants = await Promise.all([{}, ...examples].map(make));
  const vary = (settings: Record<string, unknown>): Variant => {
    const [plain] = variants; // What it reads may not depend on these settings.
    return {
      ...variantOf(name, source(settings), described(plain!)),
      settings: { ...plain!.settings, ...settings },
    };
  };
  return { name, group_min, examples, variants, vary };
}

function described({ settings, losses, credit }: Variant): Described {
  const parts = losses.map((
    { reads, pairs },
    i,
  ) => [i === 0 ? "loss" : "value_loss", { reads: [...reads], pairs }]);
  return {
    settings,
    group_min: 1,
    examples: [],
    credit: credit !== undefined,
    losses: Object.fromEntries(parts),
  };
}

function variantOf(name: string, python: Source, { settings, losses, credit }: Described): Variant {
  const title = `${name} ${JSON.stringify(python.settings)}`;
  return {
    title,
    settings,
    losses: Object.entries(losses).map(([part, found]) =>
      lossOf(part === "loss" ? title : `${title} ${part}`, {
        ...found,
        recorded: { version: 1, python: { ...python, part } },
      })
    ),
    ...(credit
      ? { credit: (round) => INTERPRETER.ask("credit", { python, round }) as Promise<Assigned> }
      : {}),
  };
}

type Recorded = { version: 1; python: Source & { part: string } };

function lossOf(
  title: string,
  { reads, pairs, recorded }: { reads: string[]; pairs: boolean; recorded: Recorded },
): LossUnderTest {
  return {
    title,
    reads,
    pairs,
    probe: (steps, held) =>
      INTERPRETER.ask("probe", { recorded, steps, held }) as ReturnType<LossUnderTest["probe"]>,
    differentiate: (cases) =>
      INTERPRETER.ask("run", cases.map((one) => ({ ...one, expression: recorded }))) as ReturnType<
        LossUnderTest["differentiate"]
      >,
  };
}
