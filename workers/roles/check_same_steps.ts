import { RemadeDifferentlyError } from "../../engine/mod.ts";

/** What two trainings of a batch must have in common, bit for bit. */
type Step = { loss: number | null; grad_norm: number | null };

/**
 * The redone steps of a version must have the recorded bits, or the weights would differ from those
 * that were rolled out.
 * @throws {RemadeDifferentlyError} If they differ.
 */
export function checkSameSteps(
  version: string,
  { recorded, redone }: { recorded: readonly Step[]; redone: readonly Step[] },
): void {
  const isSame = (one: Step, other: Step | undefined) =>
    Object.is(one.loss, other?.loss) && Object.is(one.grad_norm, other?.grad_norm);
  if (redone.length === recorded.length && redone.every((one, i) => isSame(one, recorded[i]))) {
    return;
  }
  const show = (steps: readonly Step[]) =>
    steps.map(({ loss, grad_norm }) => `loss ${loss}, grad_norm ${grad_norm}`).join("; ");
  throw new RemadeDifferentlyError(
    `Cannot redo version ${version.slice(0, 12)} because the redone step differs from the ` +
      `recorded one: recorded ${show(recorded)}; redone ${show(redone)}. ` +
      "Redo on the same hardware, thread count and package versions",
    { version, recorded: [...recorded], redone: [...redone] },
  );
}
