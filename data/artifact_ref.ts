import { z } from "zod";

/** The name of an immutable file: the sha256 of its bytes (hex) and its length. Artifacts are content-addressed. */
export const ArtifactRef = z.strictObject({
  sha256: z.string().regex(/^[0-9a-f]{64}$/, "sha256 is 64 hexadecimal digits"),
  bytes: z.int().nonnegative(),
});
export type ArtifactRef = z.infer<typeof ArtifactRef>;
