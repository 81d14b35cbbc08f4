import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { AgentNetwork, noNamespaces } from "./agent_network.ts";
import { SMALL } from "../runs.ts";
import { disturbed, type Live, until } from "../survive.ts";
import { sharedUndisturbed } from "../undisturbed.ts";

const why = await noNamespaces();
const ignore = why !== null && Deno.env.get("CI") !== "true"; // There it is a failure.
if (ignore) console.log(`the tests of a broken network are left out: ${why}`);

/**
 * An agent is lost after so many seconds without a word. A blip is shorter, with the time that TCP
 * takes to notice its end.
 */
const SILENT_S = 8;
const BLIP_MS = 2000;
const PARTITION_MS = (SILENT_S + 3) * 1000;

/** Seconds are what a network failure is made of: there is no event to wait for. */
const lasting = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

type Break = {
  env?: Record<string, string>;
  breakIt: (network: AgentNetwork, live: Live) => Promise<void>;
};

async function withBrokenNetwork({ env, breakIt }: Break): ReturnType<typeof disturbed> {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-network-" });
  const network = await AgentNetwork.create(dir);
  try {
    return await disturbed({
      against: await sharedUndisturbed(SMALL),
      overrides: [
        `workers.host=${network.host}`,
        `workers.silent_s=${SILENT_S}`,
        `trainer.python=${network.python}`,
      ],
      env,
      disturb: (live) => breakIt(network, live),
    });
  } finally {
    await network.close();
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test({
  name: "a cable that is pulled for a moment costs nothing: the same workers go on",
  ignore,
  fn: async () => {
    const { shown } = await withBrokenNetwork({
      breakIt: async (network, { reached, pids }) => {
        await reached("engine", "append", 25);
        const before = [...await pids("agent"), ...await pids("trainer")];
        await network.cable("down");
        await lasting(BLIP_MS);
        await network.cable("up");
        await reached("engine", "append", 45);
        deepStrictEqual([...await pids("agent"), ...await pids("trainer")], before);
      },
    });
    deepStrictEqual(shown.recoveries, []);
  },
});

Deno.test({
  name:
    "a host that is cut off for longer than the limit has its workers replaced, and the run ends equal",
  ignore,
  fn: async () => {
    const { shown, finished } = await withBrokenNetwork({
      breakIt: async (network, { reached }) => {
        await reached("engine", "append", 40);
        await network.cable("down");
        await lasting(PARTITION_MS);
        await network.cable("up");
      },
    });
    strictEqual(finished.code, 0);
    ok(shown.recoveries.length > 0, "nothing was recovered");
  },
});

Deno.test({
  name: "a network that carries one direction only is a partition: no operation takes effect twice",
  ignore,
  fn: async () => {
    const { shown } = await withBrokenNetwork({
      breakIt: async (network, { reached }) => {
        await reached("engine", "append", 40);
        await network.drop("");
        await lasting(PARTITION_MS);
        await network.undrop();
      },
    });
    ok(shown.recoveries.length > 0, "nothing was recovered");
  },
});

Deno.test({
  name:
    "a socket of which only the engine's half is left is replaced by the agent's next one, and nothing is lost",
  ignore,
  fn: async () => {
    const { shown } = await withBrokenNetwork({
      // It aborts its connection, and the engine is not told.
      env: { HOLDFAST_FAULT: "drop:agent@frame:70" },
      breakIt: async (network, { reached }) => {
        await reached("engine", "append", 15);
        await network.drop("tcp flags & (fin | rst) != 0");
        await until(
          "the engine has a dead and a living connection",
          async () => await network.connections() === 2,
        );
        await reached("engine", "append", 45);
      },
    });
    deepStrictEqual(shown.recoveries, []);
  },
});
