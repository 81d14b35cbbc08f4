import { RemadeDifferentlyError } from "../../engine/mod.ts";

/** What two trainings of a batch must have in common, bit for bit. */
type Step = {
  loss: number | null;
  grad_norm: number | null;
  loss_scale?: number;
  tokens_sha256?: string;
};

/**
 * The redone steps of a version must have the recorded bits, or the weights would differ from those
 * that were rolled out.
 * @throws {RemadeDifferentlyError} If they differ.
 */
export function checkSameSteps(
  version: string,
  { recorded, redone }: { recorded: readonly Step[]; redone: readonly Step[] },
): void {
  const [before, now] = [recorded[0], redone[0]];
  if (before && now && before.tokens_sha256 !== now.tokens_sha256) {
    throw new RemadeDifferentlyError(
      `Cannot redo version ${version.slice(0, 12)} because its rows are rendered to other tokens ` +
        "than when it was recorded: the model's tokenizer or chat template has changed, or the " +
        "package that reads them. Fix: restore the model's directory and the package versions",
      { version, recorded: before.tokens_sha256, redone: now.tokens_sha256 },
    );
  }
  const isSame = (one: Step, other: Step | undefined) =>
    Object.is(one.loss, other?.loss) && Object.is(one.grad_norm, other?.grad_norm) &&
    one.loss_scale === other?.loss_scale;
  if (redone.length === recorded.length && redone.every((one, i) => isSame(one, recorded[i]))) {
    return;
  }
  const show = (steps: readonly Step[]) =>
    steps.map(({ loss, grad_norm, loss_scale }) =>
      `loss ${loss}, grad_norm ${grad_norm}` +
      (loss_scale === undefined ? "" : `, loss_scale ${loss_scale}`)
    ).join("; ");
  throw new RemadeDifferentlyError(
    `Cannot redo version ${version.slice(0, 12)} because the redone step differs from the ` +
      `recorded one: recorded ${show(recorded)}; redone ${show(redone)}. ` +
      "Redo on the same hardware, thread count and package versions",
    { version, recorded: [...recorded], redone: [...redone] },
  );
}
