import { strictEqual } from "node:assert/strict";
import { sparkline } from "../../../cli/display/sparkline.ts";

Deno.test("sparkline() scales between the least and the greatest value, and shows the newest", () => {
  strictEqual(sparkline([1, 1, 1]), "▁▁▁");
  strictEqual(sparkline([0, 0.5, 1]), "▁▅█");
  strictEqual([...sparkline(Array.from({ length: 100 }, (_, i) => i))].length, 40);
});
