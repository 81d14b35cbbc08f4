import { match, strictEqual } from "node:assert/strict";
import { PYTHON_FRAMES_URL, pythonFramesText } from "../../../workers/mod.ts";

Deno.test("Python's frames are what the protocol declares (else: deno task schema)", async () => {
  strictEqual(await Deno.readTextFile(PYTHON_FRAMES_URL), pythonFramesText());
});

Deno.test("pythonFramesText() leaves the numbers of what an agent sends to the line", () => {
  const text = pythonFramesText();
  const of = (name: string) => text.split(`class ${name}(`)[1]!.split("\n\n")[0]!;
  match(of("EngineTask"), /^Frame\):\n {4}kind = "task"\n {4}epoch: int\n {4}seq: int\n/);
  match(of("AgentError"), /^ReliableFrame\):\n {4}kind = "error"\n {4}task: str\n/);
  match(of("AgentProgress"), /^DroppableFrame\):\n {4}kind = "progress"\n {4}task: str\n/);
  match(of("EngineStartGroup"), /\n {4}part: GroupPart \| None = None\n/);
});
