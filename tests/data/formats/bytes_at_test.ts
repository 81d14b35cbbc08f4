import { deepStrictEqual, rejects } from "node:assert/strict";
import { open } from "node:fs/promises";
import { bytesAt } from "../../../data/formats/bytes_at.ts";
import { rowHome } from "../row_home.ts";

Deno.test("bytesAt() reads all bytes that are asked for, or says where the file ends", async () => {
  const path = `${await rowHome()}/bytes`;
  await Deno.writeFile(path, Uint8Array.of(1, 2, 3, 4));
  const handle = await open(path);
  try {
    deepStrictEqual(await bytesAt(handle, 1, 3), Uint8Array.of(2, 3));
    deepStrictEqual(await bytesAt(handle, 3, 1), new Uint8Array());
    await rejects(bytesAt(handle, 2, 6), { message: "the file ends at byte 4" });
  } finally {
    await handle.close();
  }
});
