import { z } from "zod";

const /** @internal */ artifactRefSchema = z.strictObject({
  sha256: z.string().regex(/^[0-9a-f]{64}$/, "sha256 is 64 hexadecimal digits"),
  bytes: z.int().nonnegative(),
});
/**
 * The name of an immutable file: the sha256 of its bytes (hex) and its length. Artifacts are
 * content-addressed.
 */
export type ArtifactRef = z.infer<typeof artifactRefSchema>;
/** Schema of {@linkcode ArtifactRef}. */
export const ArtifactRef: typeof artifactRefSchema = artifactRefSchema;
