import { z } from "zod";
import { digestFile, hubFileName, PreparedSource, sourceFiles } from "../../../data/mod.ts";
import { defineStage, type Stage } from "../../../engine/mod.ts";
import { claimOutput } from "../../files/output_directory.ts";
import { InputFile } from "../../files/prepared_part.ts";
import { Paths } from "../../resources.ts";

const Input = z.strictObject({ inputs: z.array(PreparedSource), output: z.string() });
/** @internal */
type Input = z.input<typeof Input>;

/**
 * Finds the files of all inputs and their digests, and takes the output directory: another run's
 * data are refused before anything is read. A second run finds the same, or the files have changed.
 */
export const listInputs: Stage<Input, InputFile[]> = defineStage({
  name: "list_inputs",
  version: 1,
  input: Input,
  output: z.array(InputFile),
  async run({ inputs, output }, ctx) {
    claimOutput(output, ctx.resource(Paths).owner);
    const found: Omit<InputFile, "name">[] = [];
    for (const [input, source] of inputs.entries()) {
      for (const { path } of await sourceFiles(source)) {
        const name = hubFileName(source.path, path); // The same on the host that resumes.
        found.push({ file: found.length, input, path: name, ...await digestFile(path) });
      }
    }
    const names = shortNames(found.map(({ path }) => path));
    return found.map((file, i) => ({ ...file, name: names[i]! }));
  },
});

/** The ends of paths, each with as many directories as it needs to differ from the others. */
export function shortNames(paths: readonly string[]): string[] {
  const parts = paths.map((path) => path.split("/").filter((part) => part !== ""));
  const end = (i: number, count: number) => parts[i]!.slice(-count).join("/");
  return paths.map((path, i) => {
    for (let count = 1; count < parts[i]!.length; count++) {
      const same = paths.some((other, j) => other !== path && end(j, count) === end(i, count));
      if (!same) return end(i, count);
    }
    return parts[i]!.join("/");
  });
}
