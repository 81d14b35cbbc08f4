import { match, strictEqual } from "node:assert/strict";
import { PYTHON_FRAMES_URL, pythonFramesText } from "../../../workers/mod.ts";

Deno.test("Python's frames are what the protocol declares (else: deno task schema)", async () => {
  strictEqual(await Deno.readTextFile(PYTHON_FRAMES_URL), pythonFramesText());
});

Deno.test("pythonFramesText() leaves the numbers of what an agent sends to the line", () => {
  const text = pythonFramesText();
  const of = (name: string) => text.split(`class ${name}(`)[1]!.split("\n\n")[0]!;
  match(of("EngineTask"), /^Frame, .*tag="task"\):\n {4}epoch: Positive\n {4}seq: Positive\n/);
  match(of("AgentError"), /^ReliableFrame, .*tag="error"\):\n {4}task: Id\n/);
  match(of("AgentProgress"), /^DroppableFrame, .*tag="progress"\):\n {4}task: Id\n/);
  match(of("EngineStartGroup"), /\n {4}part: GroupPart \| UnsetType = UNSET\n/);
});

Deno.test("pythonFramesText() has the limits of the protocol", () => {
  const text = pythonFramesText();
  match(text, /^PROTOCOL_VERSION = \d+$/m);
  match(text, /^Id = Annotated\[str, Meta\(min_length=1, max_length=200\)\]$/m);
  match(text, /^ {4}log_tail: Annotated\[list\[str\], Meta\(max_length=40\)\]$/m);
  match(text, /^ {4}failures: Annotated\[list\[FailureReport\], Meta\(min_length=1\)\]$/m);
  match(text, /^ {4}pid: int$/m); // The limits of JavaScript's whole numbers are nobody's.
});
