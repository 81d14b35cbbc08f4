import { strictEqual } from "node:assert/strict";
import { contentHash, contentName } from "../../../data/sources/content_hash.ts";

Deno.test("contentName() has the first 256 bits of BLAKE2b (RFC 7693, appendix A)", () => {
  strictEqual(
    contentName(contentHash().update("abc")),
    "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1",
  );
});
