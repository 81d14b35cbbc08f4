import { runCommand } from "../processes/run_command.ts";

/**
 * uv ignores pip's settings, but companies configure their mirrors, proxies and certificates there.
 * So each setting is passed to uv as a variable, unless that variable is already set.
 */
const AS_VARIABLES: Record<string, { names: string[]; separator?: string }> = {
  "index-url": { names: ["UV_DEFAULT_INDEX"] },
  "extra-index-url": { names: ["UV_INDEX"], separator: " " },
  "find-links": { names: ["UV_FIND_LINKS"], separator: "," },
  "trusted-host": { names: ["UV_INSECURE_HOST"], separator: " " },
  cert: { names: ["SSL_CERT_FILE"] },
  "client-cert": { names: ["SSL_CLIENT_CERT"] },
  proxy: { names: ["HTTPS_PROXY", "HTTP_PROXY"] },
  "default-timeout": { names: ["UV_HTTP_TIMEOUT"] },
  timeout: { names: ["UV_HTTP_TIMEOUT"] },
  retries: { names: ["UV_HTTP_RETRIES"] },
};

/** Where pip looks for the options of `pip install`: what comes later wins. */
const SECTIONS = ["global", "install", ":env:"];

/** The values are Python literals, so Python reads them. */
const PROBE = `
import ast, json, subprocess, sys
command = [sys.executable, "-m", "pip", "config", "list"]
listed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
pairs = [line.partition("=") for line in listed.splitlines() if "=" in line]
print(json.dumps([[name, str(ast.literal_eval(value))] for name, _, value in pairs]))
`;

/**
 * pip's settings by option, as \`pip install\` of this interpreter would use them. None if its pip
 * does not run.
 */
export async function pipSettings(
  interpreter: string,
  signal?: AbortSignal,
): Promise<Record<string, string>> {
  const { success, lines } = await runCommand([interpreter, "-c", PROBE], { signal });
  if (!success) return {};
  const listed = JSON.parse(lines.at(-1)!) as [string, string][];
  const of = (section: string) =>
    listed.filter(([name]) => name.startsWith(`${section}.`))
      .map(([name, value]): [string, string] => [name.slice(section.length + 1), value]);
  return Object.fromEntries(SECTIONS.flatMap(of));
}

export type UvSettings = { env: Record<string, string>; args: string[] };

/**
 * The environment and options of uv that correspond to `settings`, for a process with environment
 * `env`.
 */
export function asUvSettings(
  settings: Record<string, string>,
  env: Record<string, string>,
): UvSettings {
  const entries = Object.entries(AS_VARIABLES).flatMap(([option, { names, separator }]) => {
    const value = settings[option]?.trim();
    if (!value) return [];
    const text = separator === undefined ? value : value.split(/\s+/).join(separator);
    const taken = (name: string) =>
      env[name] !== undefined || env[name.toLowerCase()] !== undefined;
    return names.filter((name) => !taken(name)).map((name): [string, string] => [name, text]);
  });
  const alone = /^(1|true|yes|on)$/i.test(settings["no-index"] ?? "");
  return { env: Object.fromEntries(entries), args: alone ? ["--no-index"] : [] };
}
