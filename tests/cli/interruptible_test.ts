import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { interruptible } from "../../cli/interruptible.ts";

/** Listeners of this process's signals, while `work` runs. */
async function listening<T>(work: (listeners: Map<string, () => void>) => Promise<T>): Promise<T> {
  const { addSignalListener, removeSignalListener } = Deno;
  const listeners = new Map<string, () => void>();
  Deno.addSignalListener = (name, listener) => void listeners.set(name, listener);
  Deno.removeSignalListener = (name) => void listeners.delete(name);
  try {
    return await work(listeners);
  } finally {
    Object.assign(Deno, { addSignalListener, removeSignalListener });
  }
}

Deno.test("interruptible() turns each signal into `stop`, and listens only during the work", async () => {
  await listening(async (listeners) => {
    for (const name of ["SIGINT", "SIGTERM"]) {
      const stopped = await interruptible((stop) => {
        deepStrictEqual([stop.aborted, [...listeners.keys()]], [false, ["SIGINT", "SIGTERM"]]);
        listeners.get(name)!();
        return Promise.resolve(stop.aborted);
      });
      strictEqual(stopped, true);
      strictEqual(listeners.size, 0);
    }
    const codes: number[] = [];
    const twice = (stop: AbortSignal) => {
      for (const name of ["SIGINT", "SIGTERM"]) listeners.get(name)!();
      return Promise.resolve(stop.aborted);
    };
    strictEqual(await interruptible(twice, (code) => void codes.push(code)), true);
    deepStrictEqual(codes, [130]);
    await rejects(interruptible(() => Promise.reject(new Error("lost"))), { message: "lost" });
    strictEqual(listeners.size, 0);
  });
});
