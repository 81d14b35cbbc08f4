import { match, ok } from "node:assert/strict";
import { parseConfig } from "../../../configs/mod.ts";
import { ArtifactStore } from "../../../engine/mod.ts";
import { workerBlocks } from "../../../runs/session/worker_blocks.ts";
import { WorkerGroups } from "../../../runs/session/worker_groups.ts";
import type { WorkersEvent } from "../../../workers/mod.ts";
import { Events, withHome } from "../../workers/fixtures.ts";

/** The gate names an interpreter that has the agent's packages. */
const python = Deno.env.get("HOLDFAST_TEST_PYTHON") ?? "";
const SMALL = new URL("../../../configs/quickstart_small.yaml", import.meta.url);

Deno.test({
  name: "workers.interface of a configuration is what the agent starts every group on",
  ignore: python === "",
  fn: () =>
    withHome(async (home) => {
      const text = `${await Deno.readTextFile(SMALL)}\nworkers: { interface: none9 }\n`;
      const { config } = await parseConfig(text, { file: SMALL.pathname });
      const events = new Events<WorkersEvent>();
      const groups = new WorkerGroups({
        run: "run",
        home,
        blocks: workerBlocks(config)!,
        artifacts: new ArtifactStore(`${home}/artifacts`),
        recorded: [],
        python: () => Promise.resolve(python),
        onEvent: events.push,
      });
      groups.start(1);
      try {
        for (const name of ["trainer", "sampler/0"]) {
          const event = await events.until((event) =>
            event.type === "group" && event.group === name && event.state !== "starting"
          );
          ok(event.type === "group" && event.state === "failed");
          match(
            event.failure!.message,
            /Cannot use network interface 'none9' .* Fix: set workers\.interface to one of /,
          );
        }
      } finally {
        await groups.stop();
      }
    }),
});
