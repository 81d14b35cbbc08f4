import { basename, dirname } from "node:path";
import { fileURLToPath } from "node:url";

/** One file and how to verify it. `sha256`: hex. */
export type ShippedFile = { path: string; url: string; bytes: number; sha256: string };

/**
 * Files that shipped configurations read and the repository lacks: one directory, from one source.
 */
export type ShippedFiles = {
  name: string;
  /** Absolute. */
  dir: string;
  /** Where a person finds the same files. */
  page: string;
  /** In the order in which they are fetched. */
  files: ShippedFile[];
};

type Listed = [name: string, bytes: number, sha256: string];

const MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct";
const MODEL_REVISION = "12fd25f77366fa6b3b4b768ec3050bf629380bac";
const MODEL_FILES: Listed[] = [
  [
    "generation_config.json",
    132,
    "87b916edaaab66b3899b9d0dd0752727dff6666686da0504d89ae0a6e055a013",
  ],
  [
    "special_tokens_map.json",
    655,
    "2b7379f3ae813529281a5c602bc5a11c1d4e0a99107aaa597fe936c1e813ca52",
  ],
  [
    "tokenizer_config.json",
    3764,
    "4ec77d44f62efeb38d7e044a1db318f6a939438425312dfa333b8382dbad98df",
  ],
  ["tokenizer.json", 2_104_556, "9ca9acddb6525a194ec8ac7a87f24fbba7232a9a15ffa1af0c1224fcd888e47c"],
  [
    "model.safetensors",
    269_060_552,
    "5af571cbf074e6d21a03528d2330792e532ca608f24ac70a143f6b369968ab8c",
  ],
  // The last: a directory without it is not a model, so an incomplete one is never used as a model.
  ["config.json", 861, "8eb740e8bbe4cff95ea7b4588d17a2432deb16e8075bc5828ff7ba9be94d982a"],
];

/** The authors' own files. The hub has them as Parquet only. */
const GSM8K = "openai/grade-school-math";
const GSM8K_REVISION = "3101c7d5072418e28b9008a6636bde82a006892c";
const GSM8K_DIR = "grade_school_math/data";
const GSM8K_FILES: Listed[] = [
  ["train.jsonl", 4_166_206, "17f347dc51477c50d4efb83959dbb7c56297aba886e5544ee2aaed3024813465"],
  ["test.jsonl", 749_738, "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14"],
];

const HUB = "https://huggingface.co";

function shipped(
  place: string,
  { name, page, from, files }: { name: string; page: string; from: string; files: Listed[] },
): ShippedFiles {
  const dir = fileURLToPath(new URL(`../${place}`, import.meta.url));
  const at = ([file, bytes, sha256]: Listed) => ({
    path: `${dir}/${file}`,
    url: `${from}/${file}`,
    bytes,
    sha256,
  });
  return { name, dir, page, files: files.map(at) };
}

/** Everything that shipped configurations read. `hub`: the Hugging Face Hub or a mirror of it. */
export function shippedFiles(hub = Deno.env.get("HF_ENDPOINT") || HUB): ShippedFiles[] {
  return [
    shipped("models/SmolLM2-135M-Instruct", {
      name: basename(MODEL),
      page: `${HUB}/${MODEL}/tree/${MODEL_REVISION}`,
      from: `${hub.replace(/\/+$/, "")}/${MODEL}/resolve/${MODEL_REVISION}`,
      files: MODEL_FILES,
    }),
    shipped("datasets/gsm8k", {
      name: "GSM8K",
      page: `https://github.com/${GSM8K}/tree/${GSM8K_REVISION}/${GSM8K_DIR}`,
      from: `https://raw.githubusercontent.com/${GSM8K}/${GSM8K_REVISION}/${GSM8K_DIR}`,
      files: GSM8K_FILES,
    }),
  ];
}

/** Whether a model's directory or a file of rows is one of these, or in them. */
export function holds({ dir }: ShippedFiles, path: string): boolean {
  return path === dir || dirname(path) === dir;
}
