import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { hubDataset, hubDatasetText, isHubDataset } from "../../data/mod.ts";

const COMMIT = "c1899de289a04d12100db370d81485cdf75e47ca";
const WHOLE = { files: null, subset: null, split: null };

Deno.test("hubDataset() reads a name, its revision and commit, and the part", () => {
  const cases: [string, string, object][] = [
    ["", "a/b@main", {}],
    ["@v1.0", "a/b@v1.0", {}],
    [`@${COMMIT}`, `a/b@${COMMIT}`, {}],
    [`@main@${COMMIT}?split=train`, `a/b@main@${COMMIT}`, { split: "train" }],
    ["?subset=main&split=train", "a/b@main", { subset: "main", split: "train" }],
    ["@main?split=t%20%26%C3%A9", "a/b@main", { split: "t &é" }],
    ["/data/train-*.parquet", "a/b@main", { files: "data/train-*.parquet" }],
    ["@refs/pr/1/a.csv", "a/b@refs/pr/1", { files: "a.csv" }],
    [
      `@refs/convert/parquet@${COMMIT}/main/train/*.parquet`,
      `a/b@refs/convert/parquet@${COMMIT}`,
      { files: "main/train/*.parquet" },
    ],
  ];
  for (const [end, name, part] of cases) {
    const read = hubDataset(`hf://datasets/a/b${end}`);
    deepStrictEqual(read, { name, part: { ...WHOLE, ...part } }, end);
    deepStrictEqual(hubDataset(hubDatasetText(read)), read);
  }
});

Deno.test("hubDatasetText() is one text for all spellings of a part", () => {
  const texts = ["?subset=s&split=t", "@main?split=t&subset=%73"];
  for (const text of texts) {
    const read = hubDataset(`hf://datasets/a/b${text}`);
    strictEqual(hubDatasetText(read), "hf://datasets/a/b@main?subset=s&split=t");
  }
});

Deno.test("hubDataset() says what is wrong with a name, and how to write one", () => {
  const cases: [string, string][] = [
    ["hf://a/b", "it is not a data set of the hub"],
    ["hf://datasets/b", "it is not a data set of the hub"],
    ["hf://datasets/a/b@", "it is not a data set of the hub"],
    ["hf://datasets/../b", "it is not a data set of the hub"],
    ["hf://datasets/a/b?", "'' is neither subset=NAME nor split=NAME"],
    ["hf://datasets/a/b?config=c", "'config=c' is neither subset=NAME nor split=NAME"],
    ["hf://datasets/a/b?split=", "'split=' is neither subset=NAME nor split=NAME"],
    ["hf://datasets/a/b?split=a&split=b", "it has two of 'split'"],
    ["hf://datasets/a/b?split=%", "'%' has a % that is none of an encoding"],
    ["hf://datasets/a/b/a.csv?split=a", "files have no subset and no split"],
  ];
  for (const [text, why] of cases) {
    throws(() => hubDataset(text), {
      name: "DataError",
      message: `${text}: ${why}; write hf://datasets/OWNER/NAME@REVISION, with ` +
        "?subset=NAME&split=NAME or /FILES after it",
    });
  }
});

Deno.test("isHubDataset() is false for every path", () => {
  const paths = ["a/b", "/hf:/a", "./hf://datasets/a/b", "HF://a", "~/a", "hf:/a", "datasets/a/b"];
  deepStrictEqual(paths.filter(isHubDataset), []);
});
