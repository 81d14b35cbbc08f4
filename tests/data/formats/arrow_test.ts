import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { arrow } from "../../../data/formats/arrow.ts";
import { parquet } from "../../../data/formats/parquet.ts";
import { loadRows } from "../../../data/mod.ts";
import { ensureTrl } from "../../environments.ts";
import { rowHome } from "../row_home.ts";

const home = await rowHome();

/** Files that pyarrow writes, of batches with 7 rows. */
async function written(): Promise<string> {
  const script = new URL("write_arrow.py", import.meta.url).pathname;
  const { code, stderr } = await new Deno.Command(await ensureTrl(), { args: [script, home] })
    .output();
  strictEqual(code, 0, new TextDecoder().decode(stderr));
  return home;
}

const dir = await written();
const none = () => ReadableStream.from([]);
const rowsOf = async (name: string, format = arrow) => {
  const path = `${dir}/${name}`;
  return (await Array.fromAsync(format.rows!({ path, named: path, bytes: none }))).flat();
};
const refused = (name: string, says: RegExp) =>
  rejects(rowsOf(name), (error: Error) => {
    match(error.message, says);
    return true;
  });
const withBytes = async (name: string, change: (bytes: Uint8Array) => Uint8Array) => {
  await Deno.writeFile(`${dir}/${name}`, change(await Deno.readFile(`${dir}/types/rows.arrow`)));
};

const types = await rowsOf("types/rows.arrow");
const peer = await rowsOf("types/rows.parquet", parquet);
strictEqual(types.length, 30);
deepStrictEqual(Object.keys(types[0]!), Object.keys(peer[0]!));
for (const column of Object.keys(types[0]!)) {
  Deno.test(`arrow reads the same values as Parquet of the same table: ${column}`, () => {
    deepStrictEqual(types.map((row) => row[column]), peer.map((row) => row[column]));
  });
}

Deno.test("arrow keeps all digits, and every character of texts", () => {
  const [row] = types;
  deepStrictEqual([row!.int64, types[3]!.int64], [2 ** 53 - 3, "-9007199254740992"]);
  deepStrictEqual(row!.uint64, "18446744073709551615");
  deepStrictEqual(row!.long_decimal, "10000000000000000000000000");
  deepStrictEqual(types[2]!.string, "😀 你好");
  deepStrictEqual(types[1]!.json, { at: "1152921504606846977", x: [1, null] });
  deepStrictEqual([types[4]!.int64, row!.null, row!.empty_text], [null, null, null]);
});

Deno.test("arrow reads entries of dictionaries, also of those that grow", async () => {
  const words = ["a", "b", "b", null, "c"].map((prompt) => ({ prompt }));
  deepStrictEqual(await rowsOf("words.arrow"), words);
  deepStrictEqual(await rowsOf("deltas.arrow"), words);
});

Deno.test("arrow reads a stream without a batch as no rows", async () => {
  deepStrictEqual(await rowsOf("no_rows/rows.arrow"), []);
  await rejects(loadRows([{ path: `${dir}/no_rows/rows.arrow` }], { home }), (error: Error) => {
    match(
      error.message,
      /no_rows\/rows\.arrow: it contains no rows; give a file with at least one/,
    );
    return true;
  });
});

Deno.test("arrow refuses a stream that is cut off anywhere", async () => {
  const { size } = await Deno.stat(`${dir}/types/rows.arrow`);
  const ends = Array.from({ length: 40 }, (_, i) => Math.floor((i / 40) * size));
  // Between two messages, the library alone takes it for whole.
  for (const end of [...ends, size - 8, size - 4, size - 1]) {
    await withBytes("torn.arrow", (bytes) => bytes.subarray(0, end));
    await refused(
      "torn.arrow",
      /torn\.arrow.*: the (file is no Arrow|rows from this one on cannot)/,
    );
  }
  await withBytes("torn.arrow", (bytes) => bytes.subarray(0, size - 8));
  // The last batch has two rows; the library asks for what follows before it hands them out.
  await refused(
    "torn.arrow",
    /torn\.arrow row 29: the rows from this one on cannot be decoded \(the file ends at byte \d+\); /,
  );
});

Deno.test("arrow refuses what follows the end of a stream", async () => {
  await withBytes("twice.arrow", (bytes) => new Uint8Array([...bytes, ...bytes]));
  await refused("twice.arrow", /twice\.arrow row 29: .*\(its rows end at byte \d+ of \d+\)/);
});

Deno.test("arrow refuses files of other kinds, and says what they are", async () => {
  const text = new TextEncoder().encode('{"prompt":"a"}\n');
  await withBytes("text.arrow", () => text);
  await refused(
    "text.arrow",
    /text\.arrow: the file is no Arrow stream, or it is cut off \(no messa/,
  );
  await withBytes("empty.arrow", () => new Uint8Array());
  await refused("empty.arrow", /empty\.arrow: the file is no Arrow stream, or it is cut off/);
  await refused("file.arrow", /file\.arrow: it is a file of Arrow \(Feather\), and only streams/);
  await refused("lz4.arrow", /lz4\.arrow: its batches are compressed, which cannot be read; write/);
  await refused(
    "union.arrow",
    /union\.arrow in: values of the type Union<Int64> cannot be read; c/,
  );
});

Deno.test("arrow names the first row that damage makes unreadable", async () => {
  const whole = await Deno.readFile(`${dir}/types/rows.arrow`);
  const begins: number[] = [];
  const view = new DataView(whole.buffer);
  for (let at = 0; at < whole.length - 8; at += 8) {
    const length = view.getInt32(at + 4, true);
    if (view.getInt32(at, true) === -1 && length > 1000 && length < 20_000) begins.push(at);
  }
  const third = begins[3]!; // After the columns and two batches.
  await withBytes("damaged.arrow", (bytes) => bytes.fill(0xff, third + 8, third + 200));
  await refused(
    "damaged.arrow",
    /damaged\.arrow row 15: the rows from this one on cannot be decoded/,
  );
});

Deno.test("arrow reads a damaged stream, or refuses it by its name: it fails in no other way", async () => {
  const { size } = await Deno.stat(`${dir}/types/rows.arrow`);
  const wrong =
    /^DataError: .*flipped\.arrow.*: the (file is no Arrow|rows from this one on cannot)/;
  let refusals = 0;
  for (let at = 0; at < size; at += 997) {
    await withBytes("flipped.arrow", (bytes) => bytes.fill(0xff, at, at + 16));
    try {
      await rowsOf("flipped.arrow");
    } catch (error) {
      match(String(error), wrong);
      refusals++;
    }
  }
  ok(refusals > 15, `${refusals} were refused`);
});

Deno.test("arrow refuses values that are said to lie outside their column", async () => {
  // The offsets of `note`: 0, 1 and 5.
  const bytes = await Deno.readFile(`${dir}/latin1.arrow`);
  const offsets = Uint8Array.of(0, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0);
  const at = bytes.findIndex((_, i) => offsets.every((byte, j) => bytes[i + j] === byte));
  bytes[at + 8] = 6;
  await Deno.writeFile(`${dir}/outside.arrow`, bytes);
  await refused("outside.arrow", /row 2: .* \(a value is said to be from 1 to 6 of 5\); the file/);
});

Deno.test("arrow's text that is not UTF-8 is refused by its row and field", async () => {
  await rejects(loadRows([{ path: `${dir}/latin1.arrow` }], { home }), (error: Error) => {
    match(error.message, /latin1\.arrow row 2 note: the text has bytes that are not UTF-8/);
    return true;
  });
});
