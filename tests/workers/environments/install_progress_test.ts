import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { InstallProgress } from "../../../workers/environments/install_progress.ts";

Deno.test("InstallProgress says what uv is doing, from the lines that uv writes", () => {
  const progress = new InstallProgress();
  const after = (line: string) => {
    progress.take(line);
    return progress.text();
  };
  strictEqual(progress.text(), "looking up the packages");
  deepStrictEqual(
    [
      "Using Python 3.11.7 environment at: t",
      "Resolved 51 packages in 1.18s",
      "Downloading torch (182.9MiB)",
      "   Building deepspeed==0.19.8",
      "Downloading numpy (16.1MiB)",
      "Downloading sympy (6.0MiB)",
      "Downloading hf-xet (4.1MiB)",
      " Downloaded torch",
      "      Built deepspeed==0.19.8",
      " Downloaded numpy",
      " Downloaded sympy",
      "Prepared 51 packages in 10.88s",
      "Installed 51 packages in 1.48s",
      " + torch==2.13.0+cpu",
    ].map(after),
    [
      "looking up the packages",
      "fetching 51 packages",
      "downloading torch (182.9 MiB)",
      "downloading torch (182.9 MiB); building deepspeed",
      "downloading torch (182.9 MiB), numpy (16.1 MiB); building deepspeed",
      "downloading torch (182.9 MiB), numpy (16.1 MiB), sympy (6.0 MiB); building deepspeed",
      "downloading torch (182.9 MiB), numpy (16.1 MiB), sympy (6.0 MiB) and 1 more; " +
      "building deepspeed",
      "downloading numpy (16.1 MiB), sympy (6.0 MiB), hf-xet (4.1 MiB); building deepspeed",
      "downloading numpy (16.1 MiB), sympy (6.0 MiB), hf-xet (4.1 MiB)",
      "downloading sympy (6.0 MiB), hf-xet (4.1 MiB)",
      "downloading hf-xet (4.1 MiB)",
      "installing 51 packages",
      "installing 51 packages",
      "installing 51 packages",
    ],
  );
});

Deno.test("InstallProgress names a phase without a count if uv gives none", () => {
  const progress = new InstallProgress();
  progress.take("Resolved in 1.4s");
  strictEqual(progress.text(), "fetching packages");
});

Deno.test("InstallProgress ignores downloads that are over once uv installs", () => {
  const progress = new InstallProgress();
  progress.take("Downloading torch (1.2GiB)");
  strictEqual(progress.text(), "downloading torch (1.2 GiB)");
  progress.take("Prepared 1 package in 3s");
  strictEqual(progress.text(), "installing 1 package");
});
