import { ok, strictEqual } from "node:assert/strict";
import { benchLogits } from "../../bench/logits.ts";
import { benchOptimizers } from "../../bench/optimizers.ts";
import { benchPacking } from "../../bench/packing.ts";

function finite(measured: Record<string, number | null>): void {
  for (const [field, value] of Object.entries(measured)) {
    ok(Number.isFinite(value), `${field} is ${value}`);
  }
}

Deno.test("bench logits: the same gradient in chunks as whole, and what each took", async () => {
  const sizes = { tokens: 256, vocabulary: 20_000, hidden: 32, chunk: 32, repeats: 1 };
  const measured = await benchLogits(
    Object.entries(sizes).flatMap(([name, value]) => [`--${name}`, String(value)]),
  );
  finite(measured);
  ok(
    measured.grad_norm_difference! < 1e-5,
    `gradient norms differ by ${measured.grad_norm_difference}`,
  );
  // 20 MiB of logits, several times over, or an eighth of it.
  ok(
    measured.peer_step_mib! > measured.full_logits_mib!,
    `all at once took ${measured.peer_step_mib} MiB`,
  );
});

Deno.test("bench packing: packed rows train the same tokens in no more micro-batches", async () => {
  const measured = await benchPacking(["--rows", "8", "--tokens", "512", "--repeats", "1"]);
  finite(measured);
  ok(measured.micro_batches! <= measured.peer_micro_batches!);
  strictEqual(measured.rows, 8);
});

Deno.test("bench optimizers: 8-bit moments take less than half, but for the embeddings", async () => {
  const sizes = ["--width", "128", "--layers", "1", "--vocabulary", "32", "--repeats", "1"];
  const measured = await benchOptimizers(sizes);
  finite(measured);
  ok(measured.adamw_8bit_state_ratio! < 0.4, `it is ${measured.adamw_8bit_state_ratio}`);
  ok(measured.adafactor_state_ratio! < measured.adamw_8bit_state_ratio!);
});
