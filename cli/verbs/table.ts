import type { Verb } from "../verb.ts";
import { adapterMergeVerb } from "./adapter/merge.ts";
import { attachVerb } from "./attach.ts";
import { cancelVerb } from "./cancel.ts";
import { checkpointsVerb } from "./checkpoints.ts";
import { configSchemaVerb } from "./config/schema.ts";
import { configShowVerb } from "./config/show.ts";
import { dataPrepareVerb } from "./data/prepare.ts";
import { dataPreviewVerb } from "./data/preview.ts";
import { diffVerb } from "./diff.ts";
import { doctorVerb } from "./doctor.ts";
import { evalVerb } from "./eval.ts";
import { fetchVerb } from "./fetch.ts";
import { forkVerb } from "./fork.ts";
import { gcVerb } from "./gc.ts";
import { logsVerb } from "./logs.ts";
import { lossShowVerb } from "./loss/show.ts";
import { lossTryVerb } from "./loss/try.ts";
import { metricsVerb } from "./metrics.ts";
import { planVerb } from "./plan.ts";
import { plotVerb } from "./plot.ts";
import { rescoreVerb } from "./rescore.ts";
import { resumeVerb } from "./resume.ts";
import { rewardTestVerb } from "./reward/test.ts";
import { rolloutsVerb } from "./rollouts.ts";
import { runVerb } from "./run.ts";
import { runsVerb } from "./runs.ts";
import { serveVerb } from "./serve.ts";
import { showVerb } from "./show.ts";
import { signalVerb } from "./signal.ts";
import { topVerb } from "./top.ts";
import { trackVerb } from "./track.ts";
import { verifyVerb } from "./verify.ts";
import { whyVerb } from "./why.ts";

/** All verbs, in the order of `--help`. A new one is its file and its line here. */
export const VERBS: readonly Verb[] = [
  runVerb,
  evalVerb,
  resumeVerb,
  forkVerb,
  serveVerb,
  gcVerb,
  trackVerb,
  signalVerb,
  cancelVerb,
  attachVerb,
  topVerb,
  runsVerb,
  showVerb,
  metricsVerb,
  plotVerb,
  logsVerb,
  rolloutsVerb,
  checkpointsVerb,
  verifyVerb,
  rescoreVerb,
  diffVerb,
  whyVerb,
  planVerb,
  fetchVerb,
  rewardTestVerb,
  lossShowVerb,
  lossTryVerb,
  dataPreviewVerb,
  dataPrepareVerb,
  adapterMergeVerb,
  doctorVerb,
  configSchemaVerb,
  configShowVerb,
];

/** What the first word of a verb of two words stands for. */
export const GROUPS: Readonly<Record<string, string>> = {
  reward: "test rewards",
  loss: "inspect losses",
  data: "inspect and prepare data",
  adapter: "work with adapters",
  config: "inspect configurations",
};
