"""Golf's static check: where the solution stands, what is read of it, and that nothing makes it hang or crash."""

from __future__ import annotations

import ast
import pickle
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weightgym.rewards.golf.check import Solution, check
from weightgym.rewards.golf.config import DEFAULTS, KEYS, full_config
from weightgym.rewards.golf.errors import SolutionError
from weightgym.rewards.golf.method import method_profile
from weightgym.rewards.golf.source import MAX_BYTES

EMPTY = "def get_config():\n    return {}\n"


def checked(text: str) -> Solution:
    return check(text.encode())


def returning(values: str, before: str = "") -> Solution:
    return checked(f"{before}\ndef get_config():\n    return {values}\n")


def refusal(text: str | bytes) -> SolutionError:
    with pytest.raises(SolutionError) as caught:
        check(text if isinstance(text, bytes) else text.encode())
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    return caught.value


def refused(values: str, before: str = "") -> SolutionError:
    return refusal(f"{before}\ndef get_config():\n    return {values}\n")


# -- the config ------------------------------------------------------------------------------------------------------


def test_the_defaults_are_the_baseline() -> None:
    found = checked(EMPTY)
    assert found.config == DEFAULTS == full_config({})
    assert found.given == {}
    assert method_profile(found) == ("baseline",)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("64 * 1024", 65536),
        ("2**16", 65536),
        ("128 * K", 131072),
        ("(K * K) // 16", 65536),
        ("BIG", 131072),
        ("+65536", 65536),
    ],
)
def test_arithmetic_is_computed(expression: str, value: int) -> None:
    found = returning(f"{{'train_batch_tokens': {expression}}}", "K = 1024\nBIG: int = 2 * K * 64\n")
    assert found.config["train_batch_tokens"] == value
    assert type(found.config["train_batch_tokens"]) is int


def test_floats() -> None:
    found = returning("{'learning_rate': 3e-3 / 2, 'grad_clip': 1, 'dropout': 0, 'weight_decay': -(-0.1)}")
    assert found.config["learning_rate"] == 0.0015
    assert type(found.config["grad_clip"]) is float
    assert found.config["weight_decay"] == 0.1


@pytest.mark.parametrize("name", KEYS)
def test_every_range_has_two_ends(name: str) -> None:
    key = KEYS[name]
    step = 1 if key.kind is int else 1e-9
    others = {"num_heads": 1, "seq_len": 128, "train_batch_tokens": 128 * 1024, "model_dim": 128, "train_steps": 900,
              "warmup_steps": 0, "warmdown_steps": 0}  # fmt: skip
    for value in (key.low, key.high):
        fitting = {"model_dim": 384} if name == "num_heads" else {}
        assert full_config({**others, **fitting, name: key.kind(value)})[name] == value
    for value in (key.low - step, key.high + step):
        with pytest.raises(SolutionError, match=rf"^check_failed: {name} = .*{key.low} to {key.high}"):
            full_config({**others, name: value})


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ("{'train_steps': True}", r"train_steps = True \(bool\): it must be an int from 50 to 900"),
        ("{'train_steps': 100.0}", r"train_steps = 100.0 \(float\)"),
        ("{'train_batch_tokens': 2**17 / 2}", r"65536.0 \(float\)"),
        ("{'dropout': False}", r"dropout = False \(bool\)"),
        ("{'dropout': '0.1'}", r"dropout = '0.1' \(str\)"),
        ("{'dropout': None}", r"NoneType"),
        ("{'dropout': 1e999 - 1e999}", r"dropout = nan: it must be a float from 0.0 to 0.25"),
        ("{'learning_rate': 1e999}", "inf"),
        ("{'learing_rate': 0.1}", "unknown config key 'learing_rate'"),
        ("{'train_steps': 60, 'train_steps': 70}", "given twice"),
        ("{'model_dim': 130, 'num_heads': 4}", "even whole number"),
        ("{'model_dim': 132, 'num_heads': 12}", "even whole number"),
        ("{'seq_len': 500}", "train_batch_tokens = 32768 must be divisible by seq_len = 500"),
        ("{'warmup_steps': 40, 'warmdown_steps': 40}", "40 \\+ 40 must be less than train_steps = 80"),
        ("{'train_steps': 1 // 0}", "division by zero"),
        ("{'dropout': (-8) ** 0.5}", "no real number"),
        ("{'train_steps': 9**9**9}", "64 bits"),
        ("{'train_steps': 2**-9999999999}", "64 bits|int from"),
        ("{'train_steps': 10.0**999}", "64 bits"),
        ("{'train_steps': 1 << 6}", "get_config"),
        ("{'train_steps': 'a' * 9}", "only numbers"),
        ("{'train_steps': 0x" + "f" * 9999 + "}", "64 bits"),
        ("{'train_steps': " + "9" * 9999 + "}", "no valid Python"),
        ("{'train_steps': -1" + "0" * 400 + "}", "64 bits"),
    ],
)  # fmt: skip
def test_wrong_values(values: str, text: str) -> None:
    error = refused(values)
    assert re.search(text, str(error)), str(error)


@pytest.mark.parametrize(
    ("values", "before"),
    [
        ("{**other()}", ""),
        ("dict(train_steps=60)", ""),
        ("{'train_steps': int(60)}", ""),
        ("{'train_steps': A}", ""),
        ("{'train_steps': A}", "A = 60\nA = 70"),
        ("{'train_steps': A}", "A = B\nB = A"),
        ("{'train_steps': A}", "for A in [60]: pass"),
        ("{'train_steps': A}", "A = 60\ndef f():\n    global A\n    A = 900"),
        ("{'train_steps': A}", "A = B = 60"),
        ("{'train_steps': A}", "A = 60\nif A:\n    A = 900"),
        ("{'train_steps': A}", "A = 60\ndel A"),
        ("{'train_steps': A}", "A = 60\nA += 1"),
        ("{'train_steps': A}", "A = 60\nimport math as A"),
        ("{'train_steps': A}", "A = 60\n(A := 61)"),
        ("{'train_steps': A}", "A = 60\n[0 for x in [1] if (A := 61)]"),
        ("{'train_steps': 60 if 1 else 70}", ""),
        ("{'train' + '_steps': 60}", ""),
        ("{1: 60}", ""),
        ("{'train_steps': [60][0]}", ""),
        ("{k: 1 for k in ()}", ""),
        ("", ""),
    ],
)
def test_what_is_no_literal(values: str, before: str) -> None:
    assert refused(values, before).code == "config_not_literal"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "check_failed"),
        ("def get_config(): pass", "config_not_literal"),
        ("def get_config():\n    x = 1\n    return {}", "config_not_literal"),
        ("get_config = dict", "check_failed"),
        ("get_config = lambda: {}", "check_failed"),
        ("async def get_config():\n    return {}", "check_failed"),
        ("if 1:\n    def get_config():\n        return {}", "check_failed"),
        ("class A:\n    def get_config():\n        return {}", "check_failed"),
        (EMPTY + EMPTY, "check_failed"),
        (EMPTY + "get_config = print", "check_failed"),
        (EMPTY + "def f():\n    global get_config\n    get_config = print", "check_failed"),
        (EMPTY + "from torch import get_config", "check_failed"),
        (EMPTY + "import os as get_config", "check_failed"),
        (EMPTY + "for get_config in []: pass", "check_failed"),
        (EMPTY + "try: pass\nexcept Exception as get_config: pass", "check_failed"),
        (EMPTY + "match 1:\n    case get_config: pass", "check_failed"),
        (EMPTY + "(get_config := 1)", "check_failed"),
        (EMPTY + "del get_config", "check_failed"),
        ("@print\n" + EMPTY, "config_not_literal"),
        ("def get_config(x):\n    return {}", "check_failed"),
        (EMPTY + "def build_model(config): pass", "check_failed"),
        (EMPTY + "def build_model(a, b, c): pass", "check_failed"),
        (EMPTY + "def build_model(a, b, *, c): pass", "check_failed"),
        (EMPTY + "def build_model(a, b):\n    yield", "check_failed"),
        (EMPTY + "build_model = print", "check_failed"),
        (EMPTY + "def quantized_roundtrip(model): pass", "check_failed"),
        (EMPTY + "class quantized_roundtrip: pass", "check_failed"),
    ],
)
def test_the_functions(text: str, code: str) -> None:
    assert refusal(text).code == code


def test_what_the_functions_may_look_like() -> None:
    text = (
        EMPTY
        + "def build_model(vocab_size: int, config: dict, *, deep=True): return [x for x in (yield_ for yield_ in ())]"
    )
    assert list(checked(text).functions) == ["get_config", "build_model"]
    assert checked('def get_config() -> "dict":\n    """Doc."""\n    return {}\n').config == DEFAULTS
    assert checked(EMPTY + "def f():\n    get_config = 1\n").config == DEFAULTS


# -- bytes that want to hurt -----------------------------------------------------------------------------------------


def test_encodings() -> None:
    assert check(b"\xef\xbb\xbf" + EMPTY.encode()).source.text == EMPTY
    assert check(EMPTY.replace("\n", "\r\n").encode()).source.text == EMPTY
    assert check(EMPTY.replace("\n", "\r").encode()).source.size == len(EMPTY)
    assert check(b"# -*- coding: UTF-8 -*-\n" + EMPTY.encode()).config == DEFAULTS
    for cookie in (
        "# coding: latin-1",
        "# -*- coding: utf-7 -*-",
        "\n# vim: set fileencoding=cp1252 :",
        "\f# coding=utf_16",
    ):
        assert "encoding" in refusal(f"{cookie}\n{EMPTY}").message
    assert "UTF-8" in refusal(EMPTY.encode() + b"# \xff").message
    assert "UTF-8" in refusal(EMPTY.encode() + b"# \xed\xa0\x80").message
    error = refusal(EMPTY + "# \0")
    assert "null" in error.message
    assert error.line == 3


MEGABYTE = {
    "lines": "\n" * MAX_BYTES,
    "names": "a;" * (MAX_BYTES // 2),
    "comment": "#" * MAX_BYTES,
    "text": "x='" + "a" * (MAX_BYTES - 5) + "'",
    "quotes": "'" * MAX_BYTES,
    "double quotes": '"' * MAX_BYTES,
    "triples": "'''\n" * (MAX_BYTES // 4),
    "unclosed": "'''" + "\\'" * (MAX_BYTES // 2 - 2),
    "backslashes": "\\\n" * (MAX_BYTES // 2),
    "fields": 'f"""' + "{a}" * (MAX_BYTES // 3 - 3) + '"""',
    "fields in lines": 'f"""' + "{a}\n" * (MAX_BYTES // 4 - 3) + '"""',
    "brackets": "(" * MAX_BYTES,
    "attributes": "a" + ".b" * (MAX_BYTES // 2 - 1),
    "sum": "1" + "+1" * (MAX_BYTES // 2 - 1),
    "minus": "-" * (MAX_BYTES - 1) + "1",
    "not": "not " * (MAX_BYTES // 4 - 1) + "1",
    "hex": "x=0x" + "f" * (MAX_BYTES - 5),
    "digits": "x=" + "9" * (MAX_BYTES - 3),
    "accents": "é=" * (MAX_BYTES // 3 - 1) + "1",
    "prefixes": "rb" * (MAX_BYTES // 2),
    "spaces": " " * MAX_BYTES,
    "tabs": "\t" * (MAX_BYTES - 1) + "x",
    "too large": "#" * (MAX_BYTES + 1),
}


@pytest.mark.parametrize("name", MEGABYTE)
def test_a_megabyte_of_anything_is_read_in_bounded_time(name: str) -> None:
    raw = MEGABYTE[name].encode()
    started = time.perf_counter()
    error = refusal(raw)
    assert error.code == "check_failed"
    assert time.perf_counter() - started < 10


@pytest.mark.parametrize("size", [90, 199, 4000, 20000])
@pytest.mark.parametrize(
    ("left", "right"),
    [("(", ")"), ("[", "]"), ("{", "}"), ("f(", ")"), ("a[", "]"), ("-", ""), ("lambda:", ""), ("1+(", ")"),
    ("a if b else ", ""),
     ("[x for x in ", "]"), ("(a:=", ")"), ("f'{", "}'"), ("{**", "}"), ("(yield ", ")"), ("1+", ""), ("a.", "")],
)  # fmt: skip
def test_deep_nesting(left: str, right: str, size: int) -> None:
    started = time.perf_counter()
    for before in ("x = ", "with ", "match ", "def f(a=", "del "):
        refusal(f"{before}{left * size}1{right * size}\n")
    assert time.perf_counter() - started < 10


def test_constants_of_constants_end() -> None:
    long = "\n".join(f"A{i + 1} = A{i} + A{i}" for i in range(3000))
    assert refused("{'train_steps': A3000}", f"A0 = 1\n{long}").code in ("check_failed", "config_not_literal")
    doubled = "\n".join(f"A{i + 1} = A{i} + A{i} - A{i}" for i in range(40))
    assert returning("{'train_steps': A40}", f"A0 = 60\n{doubled}").config["train_steps"] == 60


def test_nothing_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    side = f"open({str(mark)!r}, 'w')"
    check(f"{side}\ndef get_config(x={side}) -> {side}:\n    return {{}}\n".encode())
    refusal(f"def get_config():\n    return {{'train_steps': {side}}}\n")
    assert not mark.exists()


@settings(max_examples=300)
@given(st.binary(max_size=300))
def test_any_bytes(raw: bytes) -> None:
    with pytest.raises(SolutionError):
        check(raw)


TOKENS = [
    "def get_config():", "return", "{", "}", "(", ")", "[", "]", ":", ",", "=", "\n", "\n    ",
    "'train_steps'", "60", "**", "*",
    "f'{a}'", "lambda", "x", "global x", "import os", "from torch import *", "class A:", "if", "else",
    "for x in", "@", "...", "\\",
    "é", "'''", "#", "1e9", "0x", "await", "async", "match x:", "case", "del", ":=", "not", "-", "//", "0b1", "\t",
]  # fmt: skip


@settings(max_examples=300)
@given(st.lists(st.sampled_from(TOKENS), max_size=40).map(" ".join))
def test_any_tokens(text: str) -> None:
    try:
        code = ""
        found = checked(text)
        assert full_config(found.given) == found.config
    except SolutionError as error:
        code = error.code
    assert code in ("", "check_failed", "config_not_literal")


NUMBERS = st.recursive(
    st.integers(-(10**30), 10**30).map(str) | st.floats(allow_nan=False, allow_infinity=False).map(repr),
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "**"]), inner).map(
        lambda t: f"({t[0]}){t[1]}({t[2]})"
    ),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=200, deadline=2000)
@given(NUMBERS)
def test_arithmetic_agrees_with_python_or_is_refused(text: str) -> None:
    from weightgym.rewards.golf.arithmetic import Arithmetic

    node = ast.parse(text, mode="eval").body
    try:
        value = Arithmetic({}).value(node)
    except SolutionError:
        return
    assert repr(value) == repr(eval(text))


def test_errors_survive_pickling() -> None:
    error = refusal("def get_config(): pass")
    again = pickle.loads(pickle.dumps(error))
    assert (again.code, again.message, again.line, str(again)) == (error.code, error.message, error.line, str(error))
