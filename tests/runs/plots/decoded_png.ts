import { strictEqual } from "node:assert/strict";
import { Buffer } from "node:buffer";
import { inflateSync } from "node:zlib";

/** `pixels`: red, green, blue and opacity of each, row by row. */
type DecodedPng = { width: number; height: number; pixels: Uint8Array };

/** Bytes of a pixel. */
const PIXEL = 4;

/** The pixels of a PNG file of eight bits a colour, with opacity, that is not interlaced. */
export function decodedPng(png: Uint8Array): DecodedPng {
  const view = new DataView(png.buffer, png.byteOffset);
  strictEqual(view.getUint32(0), 0x89504e47);
  const [width, height] = [view.getUint32(16), view.getUint32(20)];
  strictEqual(view.getUint32(24) >>> 16, 0x0806, "8 bits, with opacity");
  const parts: Uint8Array[] = [];
  for (let at = 8; at < png.length; at += 12 + view.getUint32(at)) {
    const name = String.fromCharCode(...png.subarray(at + 4, at + 8));
    if (name === "IDAT") parts.push(png.subarray(at + 8, at + 8 + view.getUint32(at)));
  }
  const filtered = inflateSync(Buffer.concat(parts));
  const row = width * PIXEL;
  const pixels = new Uint8Array(height * row);
  for (let y = 0; y < height; y++) {
    const filter = filtered[y * (row + 1)]!;
    for (let i = 0; i < row; i++) {
      const at = y * row + i;
      const left = i < PIXEL ? 0 : pixels[at - PIXEL]!;
      const above = y === 0 ? 0 : pixels[at - row]!;
      const corner = i < PIXEL || y === 0 ? 0 : pixels[at - row - PIXEL]!;
      pixels[at] = filtered[at + y + 1]! + predicted(filter, { left, above, corner });
    }
  }
  return { width, height, pixels };
}

/** How many pixels of these rows have this colour, such as `#0072b2`. */
export function pixelsOf(
  { width, pixels }: DecodedPng,
  colour: string,
  rows: { from: number; to: number },
): number {
  const [red, green, blue] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  let found = 0;
  for (let at = rows.from * width * PIXEL; at < rows.to * width * PIXEL; at += PIXEL) {
    if (pixels[at] === red && pixels[at + 1] === green && pixels[at + 2] === blue) found++;
  }
  return found;
}

type Neighbours = { left: number; above: number; corner: number };

/** What a filter of PNG adds to a byte; the last is Paeth's: the one closest to left + above - corner. */
function predicted(filter: number, { left, above, corner }: Neighbours): number {
  if (filter < 3) return filter === 0 ? 0 : filter === 1 ? left : above;
  if (filter === 3) return (left + above) >> 1;
  const [a, b, c] = [
    Math.abs(above - corner),
    Math.abs(left - corner),
    Math.abs(left + above - 2 * corner),
  ] as const;
  return a <= b && a <= c ? left : b <= c ? above : corner;
}
