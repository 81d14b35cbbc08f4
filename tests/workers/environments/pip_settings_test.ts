import { deepStrictEqual } from "node:assert/strict";
import { join } from "node:path";
import { asUvSettings, pipSettings } from "../../../workers/environments/pip_settings.ts";
import { withHome } from "../fixtures.ts";

Deno.test("pip's settings reach uv under uv's names, below the user's environment", () => {
  const settings = {
    "index-url": "https://user:secret@mirror/simple",
    "extra-index-url": "https://one/simple\nhttps://two/simple",
    "find-links": "/wheels  https://files/",
    "trusted-host": "mirror\none",
    cert: "/etc/company.pem",
    "client-cert": "/etc/me.pem",
    proxy: "http://proxy:3128",
    timeout: "60",
    retries: "7",
    "disable-pip-version-check": "1",
  };
  const all = {
    UV_DEFAULT_INDEX: "https://user:secret@mirror/simple",
    UV_INDEX: "https://one/simple https://two/simple",
    UV_FIND_LINKS: "/wheels,https://files/",
    UV_INSECURE_HOST: "mirror one",
    SSL_CERT_FILE: "/etc/company.pem",
    SSL_CLIENT_CERT: "/etc/me.pem",
    HTTPS_PROXY: "http://proxy:3128",
    HTTP_PROXY: "http://proxy:3128",
    UV_HTTP_TIMEOUT: "60",
    UV_HTTP_RETRIES: "7",
  };
  deepStrictEqual(asUvSettings(settings, {}), { env: all, args: [] });
  const { HTTPS_PROXY: _, UV_INDEX: __, ...rest } = all;
  deepStrictEqual(asUvSettings(settings, { https_proxy: "http://mine", UV_INDEX: "" }).env, rest);
  deepStrictEqual(asUvSettings({ "no-index": "true" }, {}), { env: {}, args: ["--no-index"] });
  deepStrictEqual(asUvSettings({ "no-index": "false" }, {}), { env: {}, args: [] });
  deepStrictEqual(asUvSettings({}, {}), { env: {}, args: [] });
});

Deno.test("pip's variables win over its files, and `install` over `global`", () =>
  withHome(async (home) => {
    const config = join(home, "pip.conf");
    await Deno.writeTextFile(
      config,
      `[global]
index-url = https://mirror/it's/simple
extra-index-url =
    https://one/simple
    https://two/simple
timeout = 10
cert = /etc/global.pem
[install]
timeout = 20
retries = 3
[download]
timeout = 30
`,
    );
    const interpreter = join(home, "python");
    const cleared = `env -i PATH="$PATH" HOME='${home}' PIP_CONFIG_FILE='${config}' PIP_RETRIES=4`;
    await Deno.writeTextFile(
      interpreter,
      `#!/bin/sh\nexec ${cleared} "$(command -v python3)" "$@"\n`,
      { mode: 0o755 },
    );
    const { "index-url": index, "extra-index-url": extra, timeout, retries, cert } =
      await pipSettings(interpreter);
    deepStrictEqual([index, extra?.trim(), timeout, retries, cert], [
      "https://mirror/it's/simple",
      "https://one/simple\nhttps://two/simple",
      "20",
      "4",
      "/etc/global.pem",
    ]);
    deepStrictEqual(await pipSettings("/no/such/python"), {});
  }));
