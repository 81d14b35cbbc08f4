import type { Expression } from "../../../data/mod.ts";
import type { Differentiated, Outcome } from "../properties/asked_of.ts";

/**
 * One expression on one step under several cuts, computed by the worker's interpreter in float64.
 */
type TorchCase = Differentiated & { expression: Expression };

const path = (relative: string) => new URL(relative, import.meta.url).pathname;

/**
 * A Python process that answers a line of JSON with a line of JSON, in order. It begins when this
 * module is loaded, not in a test, and ends with its standard input.
 */
export class TorchDriver {
  readonly #lines: ReadableStreamDefaultReader<Uint8Array> | null;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array> | null;
  readonly #decoder = new TextDecoder();
  #last: Promise<unknown> = Promise.resolve();
  #rest = "";

  constructor(program: string, python = Deno.env.get("HOLDFAST_TEST_PYTHON")) {
    const child = python ? start(python, program) : null;
    this.#lines = child?.stdout.getReader() ?? null;
    this.#writer = child?.stdin.getWriter() ?? null;
  }

  ask(command: string, argument: unknown): Promise<unknown> {
    const answer = this.#last.then(() => this.#roundTrip({ command, argument }));
    this.#last = answer.catch(() => {});
    return answer;
  }

  async #roundTrip(request: unknown): Promise<unknown> {
    if (this.#writer === null) {
      throw new Error(
        "Cannot compare with torch because HOLDFAST_TEST_PYTHON is not set: 'deno task test' " +
          "sets it to a Python that it makes",
      );
    }
    await this.#writer.write(new TextEncoder().encode(JSON.stringify(request) + "\n"));
    const { error, result } = JSON.parse(await this.#line());
    if (error) throw new Error(error);
    return result;
  }

  async #line(): Promise<string> {
    const parts: string[] = [];
    while (!this.#rest.includes("\n")) {
      parts.push(this.#rest);
      const { value, done } = await this.#lines!.read();
      if (done) {
        throw new Error(
          "Cannot compare with torch because its process ended: see what it wrote above",
        );
      }
      this.#rest = this.#decoder.decode(value, { stream: true });
    }
    const end = this.#rest.indexOf("\n");
    const line = parts.join("") + this.#rest.slice(0, end);
    this.#rest = this.#rest.slice(end + 1);
    return line;
  }
}

function start(python: string, program: string) {
  return new Deno.Command(python, {
    args: [program],
    env: {
      PYTHONPATH: `${path("../../../workers/python")}:${path("../../python/loss")}`,
      OMP_NUM_THREADS: "1",
      PYTHONDONTWRITEBYTECODE: "1",
    },
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
}

/** The worker's interpreter: one process for all tests of a file. */
export const INTERPRETER = new TorchDriver(path("torch_driver.py"));

/** The outcomes of each case are in the order of its cuts. */
export function runTorch(cases: readonly TorchCase[]): Promise<Outcome[][]> {
  return INTERPRETER.ask("run", cases) as Promise<Outcome[][]>;
}
