import { MemoryStore } from "../../testing/mod.ts";
import { storeContract } from "../contracts/store_contract.ts";

storeContract(
  "MemoryStore",
  (clock) => ({ store: new MemoryStore({ clock }), dispose: () => Promise.resolve() }),
);
