import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { fail, firstLine, ok, room, warn } from "../../../runs/checks/check.ts";

Deno.test("a check has a fix if and only if it is not OK", () => {
  deepStrictEqual(ok("a", "b"), { name: "a", verdict: "OK", says: "b", fix: null });
  deepStrictEqual(warn("a", "b", "c"), { name: "a", verdict: "WARN", says: "b", fix: "c" });
  deepStrictEqual(fail("a", "b", "c"), { name: "a", verdict: "FAIL", says: "b", fix: "c" });
});

Deno.test("room() says how much a disk has, and the fix where that is little", () => {
  match(room("disk", "/", "free some").says, /^\d+\.\d GiB free at \/$/);
  const { verdict, fix } = room("disk", "/proc", "free some");
  deepStrictEqual([verdict, fix], ["WARN", "free some"]);
});

Deno.test("firstLine() is null of a command that fails or is not there", async () => {
  strictEqual(await firstLine("sh", ["-c", "echo a; echo b"]), "a");
  strictEqual(await firstLine("sh", ["-c", "exit 1"]), null);
  strictEqual(await firstLine("/no/such/command", []), null);
});
