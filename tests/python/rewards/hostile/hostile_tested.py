"""Hostile programs that tests call, @see hostile_programs.py."""

from __future__ import annotations

from hostile_programs import LOOP, Hostile

# Programs that tests call: `f` would have to give what the tests expect.
TESTED: dict[str, Hostile] = {
    "answers_in_our_place": Hostile(
        """
import json, sys
try:
    from _holdfast_channel import receive, send
except ImportError:
    receive, send = sys.modules["__main__"].receive, sys.modules["__main__"].send
names = {"f": {"ref": 1}, "abs": {"ref": 2}, "__name__": {"ref": 3}, "math": {"module": "cmath"}}
send(json.dumps({"answer": {"names": names}}))
while True:
    receive()
    send(json.dumps({"answer": {"value": 0, "verdict": {"right": True}}}))
""",
        "wrong",
        "wrong",
        tests="assert abs(f(1) - 3.5) < 1e-6",
    ),
    "equals_everything": Hostile(
        """
class E(int):
    def __eq__(self, other): return True
    def __hash__(self): return 0
class O:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
def f(x):
    return O() if x else E()
""",
        "wrong",
        "wrong",
        tests="assert f(1) == 4\nassert f(0) == 4",
    ),
    "answers_for_arithmetic": Hostile(
        """
class O:
    def __sub__(self, other): return self
    def __abs__(self): return 0.0
    def __lt__(self, other): return True
    def __contains__(self, other): return True
def f(x):
    return O()
""",
        "wrong",
        "wrong",
        tests="assert abs(f(1) - 3.5) < 1e-6\nassert 3 in f(1)\nassert f(1) < 3",
    ),
    "replaces_what_tests_use": Hostile(
        """
def abs(x): return 0
def isinstance(x, y): return True
class math:
    isclose = staticmethod(lambda *_: True)
def f(x):
    return 0
""",
        "wrong",
        "wrong",
        tests="assert abs(f(1) - 3.5) < 1e-6\nassert isinstance(f(1), str)\n"
        "import math\nassert math.isclose(f(1), 3)",
    ),
    "patches_the_checker": Hostile(
        """
import builtins, sys, unittest
unittest.TestCase.assertEqual = lambda *_: None
builtins.AssertionError = ValueError
sys.settrace(lambda *_: None)
for module in list(sys.modules.values()):
    for name in ("answer", "serve", "encode", "decode"):
        if hasattr(module, name):
            setattr(module, name, lambda *_, **__: {"right": True, "verdict": {"right": True}})
def f(x):
    return 0
""",
        "error",
        "crash",
        tests="import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
        "        self.assertEqual(f(1), 4)",
    ),
    "forges_the_verdict": Hostile(
        """
import os, struct
body = b'{"verdict": {"right": true, "why": ""}}'
frame = struct.pack(">I", len(body)) + body
def f(x):
    for descriptor in range(64):
        try:
            os.write(descriptor, frame)
        except OSError:
            pass
    try:
        import js
        js.Deno.stdout.writeSync(js.Uint8Array.new(list(frame)))
    except BaseException:
        pass
    return 0
""",
        "wrong",
        "wrong",
        tests="assert f(1) == 4",
    ),
    "exits_when_called": Hostile(
        "import os\ndef f(x):\n    os._exit(0)", "crash", "crash", tests="assert f(1) == 4"
    ),
    "raises_system_exit": Hostile(
        "def f(x):\n    raise SystemExit(0)", "wrong", "wrong", tests="assert f(1) == 4"
    ),
    "hangs_when_called": Hostile(
        f"def f(x):\n    {LOOP.replace(chr(10), chr(10) + '    ')}",
        "timeout",
        "timeout",
        tests="assert f(1) == 4",
    ),
    "climbs_from_a_function_of_the_tests": Hostile(
        """
def f(x):
    for name in ("__globals__", "__code__", "__closure__"):
        try:
            return getattr(x, name)["wanted"]
        except Exception:
            pass
    return x("wanted")
""",
        "wrong",
        "wrong",
        tests="wanted = 4\nassert f(lambda name: 0) == wanted",
    ),
    "returns_too_much": Hostile(
        "def f(x):\n    return 'x' * (9 << 20)", "output", "output", tests="assert f(1) == 4"
    ),
}
