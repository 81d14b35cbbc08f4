import { createLogUpdate } from "log-update";
import type { Screen } from "./output.ts";

/** The lines of a terminal that are drawn again in place. */
export function livePart(screen: Screen): ReturnType<typeof createLogUpdate> {
  // What log-update asks of the stream that it draws on.
  const stream = {
    write: (text: string) => screen.write(text),
    get columns() {
      return screen.columns;
    },
    get rows() {
      return screen.rows;
    },
    isTTY: screen.tty,
  };
  return createLogUpdate(stream as unknown as NodeJS.WritableStream, { showCursor: true });
}
