/**
 * Strangers at a door: `crowd.ts PORT COUNT`. Opens COUNT sockets that say nothing, half a request,
 * a request with a wrong token, or one that is no upgrade; reads what comes and never closes one.
 * Says `here` when all were let in or cut, and `gone` when the other end has closed them all.
 */
const [port, count] = Deno.args.map(Number) as [number, number];

const upgrade = "GET /agent HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
  "Authorization: Bearer wrong\r\n\r\n";
const OPENINGS = ["", "GET /agent HT", upgrade, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"];

async function visit(opening: string): Promise<{ gone: Promise<void> }> {
  const socket = await Deno.connect({ hostname: "127.0.0.1", port });
  await socket.write(new TextEncoder().encode(opening)).catch(() => {}); // It may be cut already.
  return { gone: untilClosed(socket) };
}

async function untilClosed(socket: Deno.Conn): Promise<void> {
  const bytes = new Uint8Array(1024);
  try {
    while (await socket.read(bytes) !== null);
  } catch {
    // Reset: closed too.
  }
}

const visits = await Promise.all(
  Array.from({ length: count }, (_, i) => visit(OPENINGS[i % OPENINGS.length]!)),
);
console.log("here");
await Promise.all(visits.map(({ gone }) => gone));
console.log("gone");
await new Promise(() => setInterval(() => {}, 1000)); // Holds every socket until it is killed.
