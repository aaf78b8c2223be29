"""Golf's gate: the zoos get the verdict that they must, tricks in disguise too, and nothing makes it hang or crash."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weightgym.cli.main import cli
from weightgym.rewards.golf.gate import MAX_FINDINGS, Gate, gate

ZOO = sorted((Path(__file__).parent / "golf_zoo").glob("*.py"))
WORDS = {"legal": "legal", "review": "review_required", "illegal": "illegal"}
HEAD = (
    "import os, sys\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
    "def get_config():\n    return {}\n\n\n"
)


def judged(code: str) -> Gate:
    return gate((HEAD + code).encode())


def shown(found: Gate) -> str:
    return "\n".join([found.verdict, *map(str, found.findings)])


def test_the_zoo_is_whole() -> None:
    attacks = [path for path in ZOO if path.name.startswith("a")]
    honest = [path for path in ZOO if path.name.startswith("h")]
    assert len(attacks) >= 72
    assert len(honest) >= 20


@pytest.mark.parametrize("path", ZOO, ids=lambda path: path.stem)
def test_zoo(path: Path) -> None:
    raw = path.read_bytes()
    head = re.match(rb'"""(ATTACK|HONEST) (\w+) \[\w+\] gate=(\w+)(?: twin=\w+)?: ', raw)
    assert head is not None
    assert head[2].decode() == path.stem
    found = gate(raw)
    assert found.verdict == WORDS[head[3].decode()], shown(found)
    if head[1] == b"HONEST":
        assert found.verdict != "illegal"
    assert all(finding.code not in ("check_failed", "config_not_literal") for finding in found.findings)
    assert all(1 <= finding.line <= raw.count(b"\n") for finding in found.findings)


@pytest.mark.parametrize(
    "code",
    [
        # aliases, however long and in whatever order
        "y = os\nx = y\ny = x\nx.system('a')",
        "x0 = os\n" + "".join(f"x{i + 1} = x{i}\n" for i in range(1000)) + "x1000.system('a')",
        "".join(f"x{i + 1} = x{i}\n" for i in reversed(range(1000))) + "x0 = os\nx1000.system('a')",
        "a, b = os, 1\na.system('a')",
        "a, *b = 1, os\nb[0].system('a')",
        "o: object = os\no.system('a')",
        "(o := os).system('a')",
        "[0 for _ in [1] if (o := os)]\no.system('a')",
        "(os if 1 else 0).system('x')",
        "(0 or os).system('x')",
        "ｏｓ.system('x')",
        # through functions, classes, containers and patterns
        "def f():\n    return os\nf().system('x')",
        "(lambda: os)().system('x')",
        "(lambda o: o.system('x'))(os)",
        "def f(*, q=os):\n    q.system('a')",
        "def f(q):\n    q.system('a')\nf(q=os)",
        "def f():\n    global G\n    G = os\ndef g():\n    G.system('a')",
        "def f():\n    o = None\n    def g():\n        nonlocal o\n        o = os\n    g()\n    o.system('a')",
        "class A:\n    class B:\n        o = os\nA.B.o.system('x')",
        "class A:\n    ms = [os]\n    x = [m.system('a') for m in ms]",
        "class A:\n    def __init__(self):\n        self.o = os\n    def go(self):\n        self.o.system('x')",
        "class A:\n    def __init__(self, o):\n        self.o = o\n    def go(self):\n"
        "        self.o.system('x')\nA(os)",
        "{'a': os}.get('a').system('x')",
        "{'a': os}['a'].system('x')",
        "next(iter([os])).system('x')",
        "for n, m in enumerate([os]):\n    m.system('x')",
        "match os:\n    case m:\n        m.system('x')",
        "match [os]:\n    case [m]:\n        m.system('x')",
        # through the interpreter
        "globals()['os'].system('a')",
        "globals()['__builtins__']['eval']('1')",
        "__builtins__.eval('1')",
        "sys.modules.get('os').system('x')",
        "vars(sys)['modules']",
        "(lambda: 0).__globals__",
        "().__class__.__base__.__subclasses__()",
        "type(torch).__setattr__(F, 'exp', None)",
        "object.__setattr__(F, 'exp', None)",
        # spelled names
        "a = 'envi'\ngetattr(os, f'{a}ron')",
        "getattr(os, b'environ'.decode())",
        "getattr(os, 'norivne'[::-1])",
        "getattr(os, ''.join(reversed('norivne')))",
        "getattr(os, ''.join(['en', 'vi', 'ron']))",
        "getattr(os, chr(101) + 'nviron')",
        "getattr(os, 'ENVIRON'.lower())",
        "getattr(os, 'envxron'.replace('x', 'i'))",
        "x0 = 'environ'\n" + "".join(f"x{i + 1} = x{i}\n" for i in range(1000)) + "getattr(os, x1000)",
        "getattr(os, torch.get_name())",
        "import operator\noperator.attrgetter('environ')(os)",
        # names that only seem to be bound
        "if False:\n    open = 1\nopen('/x')",
        "class A:\n    if 0: open = 1\n    open('x')",
        "def open(): pass\ndel open\nopen('x')",
        "__name__ = '__main__'\nif __name__ == '__main__':\n    os.system('x')",
        # every kind of target
        "del F.cross_entropy",
        "for F.exp in [1]: pass",
        "F.exp: int = 1",
        "torch.pi += 1",
        "[setattr(m, 'exp', 1) for m in [F]]",
        "nn.Linear.forward = lambda self, x: x",
        "with open as F.exp: pass",
        "F.cross_entropy.__code__ = 1",
        "class Z(torch.Tensor): pass\nZ.__torch_function__ = None",
        "T = type('T', (torch.Tensor,), {'__torch_function__': None})",
        "torch._C._dispatch_library('IMPL', 'aten', 'CPU')",
        "torch.autograd.Variable._execution_engine.run_backward((1,))",
        "from torch.autograd.graph import _engine_run_backward as e\ne(1)",
        "class A: pass\nA.f = F\nA.f.exp = 1",
        "def f(m):\n    def g():\n        m.exp = 1\n    return g\nf(F)()",
        # training
        "def f(loss):\n    loss.backward()",
        "from torch import optim\noptim.AdamW([])",
        "from torch.func import *\ngrad(f)",
        "g = torch.autograd\ng.grad(1, 2)",
        "class R(nn.Module):\n    def backward(self): pass\nR().backward()",
    ],
)
def test_disguises(code: str) -> None:
    found = judged(code)
    assert found.verdict == "illegal", shown(found)


@pytest.mark.parametrize(
    "code",
    [
        "def f(open): return open('x')",
        "def eval(x): return x\neval(3)",
        "class A(nn.Module):\n    def f(self):\n        self.eval()\n        return self.train(False)",
        "import re\nre.compile('a').match('b')",
        "import math\nmath.log(2)",
        "print('loss', 3)",
        "print(len(sys.version), file=sys.stderr)",
        "torch.backends.cudnn.allow_tf32 = True",
        "x = torch.zeros(3)\n" + "x = x.view(3).add(1)\n" * 500,
        "z0 = torch.zeros(3)\n" + "".join(f"z{i + 1} = z{i}.view(3)\n" for i in range(1000)),
        "def f(x):\n    return x" + ".t()" * 70,
        "class R(torch.autograd.Function):\n    @staticmethod\n    def backward(ctx, g): return g\n"
        "    again = None\nR.backward(0, 1)",
        "from torch import Tensor\ndef f(x: Tensor) -> Tensor: return x.copy_(x).select(0, 1)",
        "import collections.abc, copy, time as clock\n"
        "def f(x: collections.abc.Mapping): return copy.copy(x), copy.deepcopy(x)",
        "class A(nn.Module):\n    def __getattr__(self, name): return super().__getattr__(name)\n"
        "    def f(self): self.__dict__.update(a=1)",
        "from enum import IntEnum\nfrom typing import NamedTuple\nclass A(IntEnum):\n    B = 1\n"
        "class C(NamedTuple):\n    d: int",
        "def f(x): return torch.roll(x, 1, dims=1), torch.roll(x, shifts=-1, dims=-1)",
        "def f(m): return {k: v for k, v in m.state_dict().items()}",
        "class N(nn.Module):\n    def forward(self, x, y=None):\n"
        "        flat = y.view(-1).long() if y is not None else None\n"
        "        return F.cross_entropy(x, flat)\n\n\ndef build_model(v, c):\n    return N()",
        "class Cell(nn.Module):\n    def forward(self, x, h=None):\n"
        "        return x if h is None else x + h * x[:, 1:].mean(1)\n"
        "class N(nn.Module):\n    def forward(self, idx, targets=None):\n        logits = self.c(idx)\n"
        "        if targets is not None:\n            targets = targets.view(targets.shape[0] * targets.shape[1])\n"
        "            self.loss = F.cross_entropy(logits, targets)\n        return logits\n"
        "def build_model(v, c):\n    return N()",
        "norm = F.rms_norm if hasattr(F, 'rms_norm') else None\nhasattr(torch, 'compile')",
        "from types import SimpleNamespace\ndef build_model(v, config):\n    c = SimpleNamespace(**config)\n"
        "    config = dict(config)\n    config['x'] = c.model_dim\n"
        "    return nn.Linear(v, config.get('model_dim', 192))",
        "import pickle, zlib\ndef quantized_roundtrip(model, p):\n"
        "    blob = zlib.compress(pickle.dumps({'half_codes': 1}))\n"
        "    artifact_bytes = len(blob)\n    return model.state_dict(), artifact_bytes",
        "def quantized_roundtrip(model, p):\n    n = 0\n    for v in model.state_dict().values():\n"
        "        n += v.numel() // 2\n"
        "    return {}, int(n)",
        "import math, random, warnings\nwarnings.filterwarnings('ignore')\nrng = random.Random(0)\nx = -math.inf",
        "def f(q, k, v, m): return F.scaled_dot_product_attention(q, k, v, attn_mask=m)",
        "while True:\n    if get_config():\n        break",
    ],
)
def test_no_false_alarm(code: str) -> None:
    found = judged(code)
    assert found.verdict == "legal", shown(found)


@pytest.mark.parametrize(
    "code",
    [
        "if __name__ == '__main__':\n    loss = build()\n    loss.backward()\n    torch.optim.Adam([]).step()",
        "import subprocess",
        "from torch import *",
        "torch.compile(nn.Linear(1, 1))",
        "import timeit",
        "d = {}\nd['x'] = F\nd['x'].exp = 1",
        "L = []\nL.append(F)\nL[0].exp = 1",
        "class A:\n    def go(self, m): m.exp = 1\nA().go(F)",
        "def f(x, name): return getattr(x, name)",
        "'{0.__init__.__globals__}'.format(F.gelu)",
        "DATA = '" + "ab" * 20_000 + "'",
        "def build_model(vocab_size, config):\n    config['train_steps'] = 900\n    return None",
        "torch.initial_seed()",
        "def f(x): return x.ctypes",
    ],
)
def test_a_person_must_look(code: str) -> None:
    found = judged(code)
    assert found.verdict == "review_required", shown(found)


def test_findings_have_lines_and_come_gravest_first() -> None:
    found = judged("import timeit\n" + "os.system('x')\n" * 100)
    assert len(found.findings) == MAX_FINDINGS
    assert {finding.severity for finding in found.findings} == {"illegal"}
    assert [finding.line for finding in found.findings] == list(range(12, 12 + MAX_FINDINGS))


def test_a_verdict_does_not_depend_on_names_or_comments() -> None:
    for path in ZOO[::5]:
        text = path.read_text()
        changed = re.sub(r"\bLM\b", "Anders", text).replace("\n\n\n", "\n# A comment: os.system\n\n")
        assert gate(changed.encode()).verdict == gate(text.encode()).verdict, path


KNOTS = {
    "aliases": "".join(f"a{i} = a{(i * 7 + 1) % 2000}.b if 1 else a{(i * 11 + 3) % 2000}.c\n" for i in range(1500)),
    "attributes": "".join(f"x.a{i} = x.a{(i * 7 + 1) % 1000}.a{(i * 3) % 1000}\n" for i in range(1000)),
    "rebound": "x = 1\n" * 4000 + "x(2)\n" * 4000,
    "calls": "def f(a): return a\n" + "f(f)\n" * 6000,
    "keywords": "def f(" + ",".join(f"a{i}=1" for i in range(3000)) + "): pass\nf("
    + ",".join(f"a{i}=2" for i in range(3000)) + ")\n",
    "slices": "class A:\n def forward(self, i, t=None):\n  return [" + "i[:,1:]," * 4000 + "1]\n",
    "means": "class A:\n def forward(self, x, t=None):\n" + ("  x" + ".mean(1)" * 70 + "\n") * 80,
    "forwards": "".join(" " * i + "def forward(self, x, t=None):\n"
    "" for i in range(90)) + " " * 90 + "return x.mean(1)\n",
    "guards": "".join(" " * i + "if __name__ == '__main__':\n" for i in range(90)) + " " * 90 + "x\n",
    "fields": "x = f'" + "{x}" * 4000 + "'\n",
    "texts": "a0 = 'a'\n" + "".join(f"a{i + 1} = a{i} + a{i}\n" for i in range(2000)) + "getattr(os, a2000)\n",
    "claims": "def quantized_roundtrip(m, c):\n p = zlib.compress(b'')\n" + " return m, len(p)\n" * 4000,
    "loops": "".join(" " * i + "while 1:\n" for i in range(90)) + " " * 90 + "x\n",
    "long list": "for m in [" + "F," * 15_000 + "]:\n    m.exp = 1\n",
}  # fmt: skip


@pytest.mark.parametrize("name", KNOTS)
def test_knots_are_judged_in_bounded_time(name: str) -> None:
    started = time.perf_counter()
    found = judged(KNOTS[name])
    assert time.perf_counter() - started < 10
    assert all(finding.code != "check_failed" for finding in found.findings)


def at_depth(frames: int, code: str) -> Gate:
    return at_depth(frames - 1, code) if frames else judged(code)


def test_a_caller_deep_in_the_stack_gets_the_same_verdict() -> None:
    chain = "def f(x):\n    return x" + ".t()" * 60
    assert at_depth(300, chain).verdict == "legal"
    for name in ("aliases", "means", "texts"):
        assert at_depth(300, KNOTS[name]) == judged(KNOTS[name])


PIECES = [
    "os", "sys", "F", "torch", "x", "y", "self", "getattr(x, 'os')", "x.y", "y()", "x[0]", "lambda: x",
    "[x for x in y]",
    "(x := y)", "f'{x}'", "'environ'", "{**x}", "{'a': F}['a']", "__import__('os')", "x if y else os", "*y",
    "await_", "1", "-x",
]  # fmt: skip
STATEMENTS = [
    "{} = {}", "{}.a = {}", "for x in {}: {}", "def x(y={}): return {}", "class x({}): y = {}",
    "with {} as x: {}", "del x; {}; {}",
    "import os as x; {}; {}", "from os import *; {}; {}", "global x; {}; {}", "try: {}\nexcept {}: pass",
    "match {}:\n case x: {}",
    "return {}; {}", "@{}\ndef y(): {}", "while {}: {}", "setattr({}, 'a', {})", "async def x(): {}; {}",
    "lambda x={}: {}", "x: {} = {}",
]  # fmt: skip
LINES = st.builds(str.format, st.sampled_from(STATEMENTS), st.sampled_from(PIECES), st.sampled_from(PIECES))


@settings(max_examples=300, deadline=3000, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(LINES, max_size=12).map("\n".join))
def test_any_program(code: str) -> None:
    found = judged(code)
    assert found.verdict in WORDS.values()
    assert (found.verdict == "legal") == (not found.findings)
    assert found == judged(code)


@settings(max_examples=100)
@given(
    st.lists(LINES, max_size=6).map("\n".join),
    st.sampled_from(["os.system('a')", "F.exp = 1", "eval('1')", "__builtins__"]),
)
def test_nothing_around_it_hides_an_attack(code: str, attack: str) -> None:
    assert judged(f"def trick():\n    {attack}\n{code}").verdict == "illegal"


@given(st.binary(max_size=200))
def test_any_bytes(raw: bytes) -> None:
    assert gate(raw).verdict == "illegal"


def run(path: Path, *args: str) -> Result:
    return CliRunner().invoke(cli, ["golf", "gate", str(path), *args], prog_name="weightgym")


@pytest.mark.parametrize(("name", "code"), [("h103_gpt_rope", 0), ("a160_patch_log", 1), ("a101_roll", 2)])
def test_gate_command(name: str, code: int) -> None:
    path = Path(__file__).parent / "golf_zoo" / f"{name}.py"
    plain, found = run(path), run(path, "--json")
    assert (plain.exit_code, found.exit_code) == (code, code)
    report = json.loads(found.stdout)
    verdict = ("legal", "illegal", "review_required")[code]
    assert plain.stdout.startswith(verdict)
    assert report["verdict"] == verdict
    assert report["reason"] == ("illegal" if code == 1 else None)
    assert report["status"] == ("buggy" if code == 1 else "ok")
    assert report["method_profile"] == ["new_computation"]
    assert all(set(finding) == {"severity", "code", "line", "text"} for finding in report["findings"])
    assert bool(report["findings"]) == (code != 0)


def test_gate_command_on_what_fails_the_check(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("def get_config():\n    return f()\n")
    found = run(tmp_path / "s.py", "--json")
    assert found.exit_code == 1
    report = json.loads(found.stdout)
    assert (report["verdict"], report["reason"], report["line"]) == ("illegal", "config_not_literal", 2)
    assert run(tmp_path / "s.py").stdout.startswith("illegal: config_not_literal: line 2: ")
