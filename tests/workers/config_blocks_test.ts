import { deepStrictEqual } from "node:assert/strict";
import { z } from "zod";
import { SamplerConfig, TrainerConfig, WorkersConfig } from "../../workers/mod.ts";

Deno.test("TrainerConfig, SamplerConfig and WorkersConfig describe every field and have a default for each", () => {
  for (const schema of [TrainerConfig, SamplerConfig, WorkersConfig]) {
    schema.parse({});
    const { properties } = z.toJSONSchema(schema, { io: "input" }) as {
      properties: Record<string, { description?: string }>;
    };
    const mute = Object.entries(properties).filter(([, field]) => !field.description).map(([name]) => name);
    deepStrictEqual(mute, []);
  }
});

Deno.test("WorkersConfig: workers wait 30 s for a lost engine, and the hub listens on loopback", () => {
  deepStrictEqual(WorkersConfig.parse({}), {
    grace_s: 30,
    silent_s: 5,
    start_timeout_s: 300,
    no_progress_s: 600,
    preempt_grace_s: 25,
    host: "127.0.0.1",
    port: 0,
    interface: null,
  });
});
