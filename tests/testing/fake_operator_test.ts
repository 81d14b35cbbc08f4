import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { FakeOperator } from "../../testing/fake_operator.ts";

const caller = (key: string) => ({ key, attempt: 1 }) as never;

/** Loads a version, and tells what it holds. */
class Holder extends FakeOperator {
  readonly operated: string[] = [];

  protected operate(op: string, { args, blobs }: { args: unknown; blobs: Uint8Array[] }) {
    this.operated.push(op);
    const version = args as string;
    if (op === "load") this.held = { version, weights: 0.5 };
    if (op === "blob") blobs.push(Uint8Array.of(7));
    return Promise.resolve(op === "blob" ? null : this.resident(version));
  }
}

Deno.test("FakeOperator records every call with its key, in order", async () => {
  const holder = new Holder(null);
  await holder.call("load", "v1", caller("k1"));
  await holder.call("read", "v1", caller("k2"));
  deepStrictEqual(holder.calls, [
    { op: "load", args: "v1", key: "k1" },
    { op: "read", args: "v1", key: "k2" },
  ]);
});

Deno.test("FakeOperator answers with one rank's output, and the operation's blobs", async () => {
  const holder = new Holder(null);
  deepStrictEqual(await holder.call("blob", "v1", caller("k")), {
    outputs: [null],
    blobs: [Uint8Array.of(7)],
    generation: 1,
  });
  deepStrictEqual((await holder.call("load", "v1", caller("k"))).blobs, []);
});

Deno.test("FakeOperator names the version that it holds if asked for a different one", async () => {
  const holder = new Holder(null);
  const read = async (version: string) => {
    const { outputs } = await holder.call("read", version, caller("k"));
    return outputs[0];
  };
  deepStrictEqual([await read("v1"), holder.version], [{ not_resident: null }, null]);
  await holder.call("load", "v1", caller("k"));
  deepStrictEqual(await read("v1"), { version: "v1", weights: 0.5 });
  deepStrictEqual([await read("v2"), holder.version], [{ not_resident: "v1" }, "v1"]);
  holder.forget();
  deepStrictEqual(await read("v1"), { not_resident: null });
});

Deno.test("FakeOperator's hook ends an operation as it begins or is done", async () => {
  for (const [broken, operated] of [["begin", []], ["done", ["load"]]] as const) {
    const moments: string[] = [];
    const holder = new Holder((_, moment) => {
      moments.push(moment);
      if (moment === broken) throw new Error("pulled out");
    });
    await rejects(holder.call("load", "v1", caller("k")), /^Error: pulled out$/);
    deepStrictEqual(holder.operated, operated);
    deepStrictEqual(moments, broken === "begin" ? ["begin"] : ["begin", "done"]);
    strictEqual(holder.calls.length, 1, "it was asked for");
  }
});

Deno.test("FakeOperator waits for its hook", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const holder = new Holder((_, moment) => moment === "begin" ? promise : undefined);
  const called = holder.call("load", "v1", caller("k"));
  deepStrictEqual(holder.operated, []);
  resolve();
  await called;
  deepStrictEqual(holder.operated, ["load"]);
});
