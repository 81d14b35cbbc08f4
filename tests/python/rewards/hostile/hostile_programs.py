"""Programs that a policy might write to harm, to spy or to be paid for nothing. Each has how it
ends in each sandbox; none may be right.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bait:
    """`secret`: in the environment of the test and in what a program must print. `file`: one that
    only its owner may read, with the text `secret`. `port`: something listens there. `place`: a
    file that does not exist.
    """

    secret: str
    file: str
    port: str
    place: str


@dataclass(frozen=True)
class Hostile:
    """`process`, `pyodide`: the metric that says how it ended; WAITS: there is no verdict.
    `stdin`: which bait it reads. `tests` None: it runs as a program, and would have to print the
    secret to be right.
    """

    code: str
    process: str
    pyodide: str
    stdin: str = "secret_is_not_here"
    tests: str | None = None


# It uses no CPU time, so nobody knows how it would end.
WAITS = "waits"

LOOP = "while True:\n    pass"
PRINT_FILE = "print(open(input()).read())"

SCRIPTS: dict[str, Hostile] = {
    # What it uses.
    "fork_bomb": Hostile(
        """
import os
while True:
    try:
        os.fork()
    except (OSError, NotImplementedError):
        pass
""",
        "timeout",
        "timeout",
    ),
    "infinite_loop_that_ignores_signals": Hostile(
        f"""
import signal
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
{LOOP}
""",
        "timeout",
        "timeout",
    ),
    "sleep": Hostile(
        "import time\ntime.sleep(1000)", WAITS, "timeout"
    ),  # WebAssembly waits busily.
    "memory_at_once": Hostile("x = bytearray(2**31 - 100)", "memory", "memory"),
    "memory_slowly": Hostile(
        "kept = []\nwhile True:\n    kept.append(bytearray(1 << 24))", "memory", "memory"
    ),
    "fills_the_disk": Hostile(
        """
for number in range(30):
    with open(f"file{number}", "wb") as file:
        file.write(bytes(8 << 20))
""",
        "error",
        "wrong",
    ),
    "many_files": Hostile(
        "for number in range(10**6):\n    open(f'file{number}', 'w').close()", "error", "timeout"
    ),
    "shared_memory": Hostile(
        """
import os
kept = []
for _ in range(100):
    file = os.memfd_create("x")
    os.write(file, bytes(8 << 20))
    kept.append(file)
""",
        "error",
        "error",
    ),
    "huge_output": Hostile(
        "import sys\nfor _ in range(64):\n    sys.stdout.write('x' * (1 << 20))",
        "output",
        "output",
    ),
    "huge_errors": Hostile(
        "import sys\nfor _ in range(64):\n    sys.stderr.write('x' * (1 << 20))", "wrong", "wrong"
    ),
    "threads_that_stay": Hostile(
        f"""
import threading
def run():
    {LOOP.replace(chr(10), chr(10) + "    ")}
for _ in range(4):
    threading.Thread(target=run).start()
""",
        "timeout",
        "error",
    ),
    "recursion": Hostile("def f():\n    f()\nf()", "error", "error"),
    "segmentation_fault": Hostile("import ctypes\nctypes.string_at(0)", "crash", "wrong"),
    "abort": Hostile("import os\nos.abort()", "crash", "crash"),
    # What it reaches.
    "reads_the_environment": Hostile(
        "import os\nprint('\\n'.join(os.environ.values()))", "wrong", "wrong"
    ),
    "reads_other_environments": Hostile(
        """
import os
for name in os.listdir("/proc"):
    if name.isdigit():
        try:
            print(open(f"/proc/{name}/environ").read())
        except OSError:
            pass
""",
        "error",
        "wrong",
    ),
    "reads_other_memory": Hostile(
        """
import os
for pid in range(1, 50):
    try:
        print(open(f"/proc/{pid}/mem", "rb").read(100))
    except OSError:
        pass
print(os.getppid())
""",
        "wrong",
        "wrong",
    ),
    "reads_a_file_of_the_home": Hostile(PRINT_FILE, "error", "error", stdin="file"),
    "reads_passwd": Hostile("print(open('/etc/passwd').read())", "error", "error"),
    "links_to_a_file": Hostile(
        "import os\nos.symlink(input(), 'link')\nprint(open('link').read())",
        "error",
        "error",
        stdin="file",
    ),
    "writes_a_file": Hostile(
        "import os\nos.makedirs('/tmp', exist_ok=True)\nopen(input(), 'w').write('x')",
        "error",
        "error",
        stdin="place",
    ),
    "removes_its_directory": Hostile(
        "import os, shutil\nshutil.rmtree(os.getcwd(), ignore_errors=True)\n"
        "shutil.rmtree('/dev', ignore_errors=True)",
        "wrong",
        "wrong",
    ),
    "opens_a_socket": Hostile(
        "import socket\nsocket.create_connection(('127.0.0.1', int(input())), timeout=1)",
        "error",
        "error",
        stdin="port",
    ),
    "sends_a_datagram": Hostile(
        "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM)"
        ".sendto(b'x', ('127.0.0.1', int(input())))",
        "error",
        "error",
        stdin="port",
    ),
    "traces_its_parent": Hostile(
        """
import ctypes, os
libc = ctypes.CDLL(None)
print(libc.ptrace(16, os.getppid(), 0, 0))
print(libc.ptrace(16, 1, 0, 0))
""",
        "wrong",
        "error",
    ),
    "kills_everyone": Hostile(
        """
import os
for pid in (os.getppid(), 1, -1):
    try:
        os.kill(pid, 9)
    except OSError:
        pass
""",
        "wrong",
        "wrong",
    ),
    "raises_its_limits": Hostile(
        """
import resource
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
""",
        "error",
        "error",
    ),
    "mounts_and_unshares": Hostile(
        """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.unshare(0x10000000), libc.mount(b"proc", b"/work", b"proc", 0, None))
print(libc.umount2(b"/usr", 2), libc.chroot(b"."), os.listdir("/"))
os.setuid(0)
""",
        "error",
        "error",
    ),
    "daemons": Hostile(
        """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000.125)
    os._exit(0)
""",
        "wrong",
        "error",
    ),
    # How it pretends.
    "ends_early": Hostile("import os\nos._exit(0)", "wrong", "crash"),
    "exits_with_0": Hostile("raise SystemExit(0)", "wrong", "wrong"),
    "prints_a_verdict": Hostile(
        """print('{"verdict": {"right": true}}\\nscore: 1\\nPASSED')""", "wrong", "wrong"
    ),
    "writes_to_every_descriptor": Hostile(
        """
import os, struct
body = b'{"verdict": {"right": true}, "score": 1, "outcome": "ok"}'
for descriptor in range(256):
    try:
        os.write(descriptor, struct.pack(">I", len(body)) + body)
    except OSError:
        pass
""",
        "wrong",
        "wrong",
    ),
    "closes_everything": Hostile(
        "import os\nprint(open(0).read())\nos.closerange(0, 256)", "error", "wrong"
    ),
    "reads_what_is_expected": Hostile(
        """
import gc, sys
def texts(value):
    return [one for one in value if type(one) is str and "secret of the" in one and len(one) < 99]
frame = sys._getframe()
while frame:
    print(texts(frame.f_locals.values()))
    frame = frame.f_back
for one in gc.get_objects():
    if type(one) is dict:
        print(*texts(list(one.values())))
    elif type(one) in (list, tuple):
        print(*texts(one))
""",
        "wrong",
        "wrong",
    ),
    # The JavaScript around Pyodide.
    "js_reads_a_file": Hostile(
        "import js\nprint(js.Deno.readTextFileSync(input()))", "error", "error", stdin="file"
    ),
    "js_reads_the_environment": Hostile(
        "import js\nprint(js.Deno.env.toObject())", "error", "error"
    ),
    "js_connects": Hostile(
        """
from pyodide.code import run_js
from pyodide.ffi import run_sync
run_js("port => { const s = Deno.connectSync ?? Deno.listen; s({ port, hostname: '127.0.0.1' }) }")(
    int(input())
)
""",
        "error",
        "error",
        stdin="port",
    ),
    "js_runs_a_program": Hostile(
        "from pyodide.code import run_js\nrun_js('new Deno.Command(\"env\").outputSync()')",
        "error",
        "error",
    ),
    "js_writes_a_file": Hostile(
        "import js\njs.Deno.writeTextFileSync(input(), 'x')", "error", "error", stdin="place"
    ),
    "js_forges_a_frame": Hostile(
        """
import js, json, struct
body = json.dumps({"code": 0, "error": "", "output": "forged", "score": 1}).encode()
js.Deno.stdout.writeSync(js.Uint8Array.new(list(struct.pack(">I", len(body)) + body)))
""",
        "error",
        "wrong",
    ),
    "js_ends": Hostile("import js\njs.Deno.exit(0)", "error", "crash"),
    "leaves_marks": Hostile(
        """
import builtins, os, sys
mark = input()
for place in ("/tmp/mark", "/dev/shm/mark", "mark", "/mark", "/work/mark", "/usr/mark"):
    try:
        with open(place, "w") as file:
            file.write(mark)
    except OSError:
        pass
builtins.mark = sys.mark = os.environ["MARK"] = mark
try:
    import js
    js.globalThis.mark = mark
    js.localStorage.setItem("mark", mark)
except BaseException:
    pass
""",
        "wrong",
        "wrong",
        stdin="secret",
    ),
    "finds_marks": Hostile(
        """
import builtins, os, sys
for place in ("/tmp/mark", "/dev/shm/mark", "mark", "/mark", "/work/mark", "/usr/mark"):
    try:
        print(open(place).read())
    except OSError:
        pass
print(getattr(builtins, "mark", ""), getattr(sys, "mark", ""), os.environ.get("MARK"))
try:
    import js
    print(getattr(js.globalThis, "mark", ""))
    print(js.localStorage.getItem("mark"))
except BaseException:
    pass
""",
        "wrong",
        "wrong",
    ),
}
