import { createHash } from "node:crypto";
import { join } from "node:path";

type Tensor = { name: string; dtype: string; shape: number[]; data: Uint8Array };

/** Tensors of one safetensors file: 8 bytes of header length, the header as JSON, the data. */
async function tensorsOf(file: string): Promise<Tensor[]> {
  const bytes = await Deno.readFile(file);
  const start = 8 + Number(new DataView(bytes.buffer).getBigUint64(0, true));
  const { __metadata__: _, ...header } = JSON.parse(
    new TextDecoder().decode(bytes.subarray(8, start)),
  );
  type Entry = { dtype: string; shape: number[]; data_offsets: [number, number] };
  return Object.entries(header as Record<string, Entry>).map((
    [name, { dtype, shape, data_offsets: [from, to] }],
  ) => ({
    name,
    dtype,
    shape,
    data: bytes.subarray(start + from, start + to),
  }));
}

/**
 * The digest of a Hugging Face directory, written from its definition alone: sha256 over the
 * tensors sorted by name: name, NUL, safetensors dtype, NUL, shape as JSON, NUL, little-endian
 * bytes.
 */
export async function safetensorsDigest(directory: string): Promise<string> {
  const tensors: Tensor[] = [];
  for await (const { name } of Deno.readDir(directory)) {
    if (name.endsWith(".safetensors")) tensors.push(...await tensorsOf(join(directory, name)));
  }
  const hash = createHash("sha256");
  for (const { name, dtype, shape, data } of tensors.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    hash.update(`${name}\0${dtype}\0${JSON.stringify(shape)}\0`).update(data);
  }
  return hash.digest("hex");
}
