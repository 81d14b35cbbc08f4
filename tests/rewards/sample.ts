/** A sample as rewards get it. */
export const sample = {
  prompt: "p",
  completion: "#### 4",
  row: { answer: "2+2=4 #### 4", level: 1 },
  answer: "4",
  tokens: 5,
  signal: new AbortController().signal,
};
