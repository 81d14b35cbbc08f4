/** Cuts text into lines without their ends; `\r` counts as an end, as progress bars write it. */
export class TextLineStream extends TransformStream<string, string> {
  constructor() {
    let rest = "";
    super({
      transform(chunk, controller) {
        const parts = (rest + chunk).split(/\r\n|\n|\r/);
        rest = parts.pop() ?? "";
        for (const part of parts) if (part !== "") controller.enqueue(part);
      },
      flush(controller) {
        if (rest !== "") controller.enqueue(rest);
      },
    });
  }
}
