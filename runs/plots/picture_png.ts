/** Pixels across: those of a page at twice its size. */
const WIDTH = 1280;

let ready: Promise<typeof import("@resvg/resvg-wasm")> | null = null;

/** An SVG picture as a PNG file. Its text has a font of ours: a machine may have none. */
export async function picturePng(svg: string): Promise<Uint8Array> {
  const [{ Resvg }, font] = await Promise.all([ready ??= renderer(), fontFile()]);
  const resvg = new Resvg(svg, {
    fitTo: { mode: "width", value: WIDTH },
    font: { fontBuffers: [font], sansSerifFamily: "DejaVu Sans" },
  });
  const image = resvg.render();
  try {
    return image.asPng();
  } finally {
    image.free();
    resvg.free();
  }
}

/** Loaded with the first picture: it takes time that other commands need not spend. */
async function renderer(): Promise<typeof import("@resvg/resvg-wasm")> {
  const resvg = await import("@resvg/resvg-wasm");
  const wasm = import.meta.resolve("@resvg/resvg-wasm/index_bg.wasm");
  await resvg.initWasm(await Deno.readFile(new URL(wasm)));
  return resvg;
}

async function fontFile(): Promise<Uint8Array> {
  // Deno installs only packages that a module imports.
  await import("dejavu-fonts-ttf/package.json", { with: { type: "json" } });
  const font = import.meta.resolve("dejavu-fonts-ttf/ttf/DejaVuSans.ttf");
  return await Deno.readFile(new URL(font));
}
