import { deepStrictEqual } from "node:assert/strict";
import { Dots } from "../../../cli/display/dots.ts";

Deno.test("Dots draws lines as braille: one from corner to corner, one place as one dot", () => {
  const dots = new Dots({ columns: 2, rows: 1 });
  dots.line({ x: 0, y: 1 }, { x: 1, y: 0 }, 0);
  deepStrictEqual(dots.rows((text) => text), ["⡠⠊"]);
  const dot = new Dots({ columns: 2, rows: 2 });
  dot.line({ x: 1, y: 0 }, { x: 1, y: 0 }, 0);
  deepStrictEqual(dot.rows((text) => text), [" ⠈", "  "]);
});

Deno.test("Dots paints a character as its last owner's, with the dots of all", () => {
  const dots = new Dots({ columns: 2, rows: 1 });
  dots.line({ x: 0, y: 0 }, { x: 1, y: 0 }, 0);
  dots.line({ x: 0, y: 1 }, { x: 0.34, y: 1 }, 1);
  deepStrictEqual(dots.rows((text, owner) => `${owner}${text}`), ["1⣉0⠉"]);
});
