"""The language generator of Golf: pure streams, valid text, and secrets that stay secret."""

from __future__ import annotations

import hashlib
import time

import numpy as np
import pytest
from golf_text import TASKS
from hypothesis import given, settings
from hypothesis import strategies as st

from weightgym.rewards.golf.data import draws
from weightgym.rewards.golf.data.corpus import language_corpus
from weightgym.rewards.golf.data.language import language
from weightgym.rewards.golf.data.stream import SECRET_VARIABLE, sample, stream
from weightgym.rewards.golf.profile import PROFILES, profile

NAMES = ("golf-cpu-v1", "lang/0", "train", "a secret")


def digest(profile: str, task: str, split: str, secret: str, size: int = 400_000) -> str:
    return hashlib.sha256(stream(profile, task, split, secret, size).tobytes()).hexdigest()


def test_the_numbers_are_those_of_splitmix64() -> None:
    """The first outputs of the published generator for this seed."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert draws.words64(1234567, 4).tolist() == published
    low = [number >> shift & 0xFFFF for number in published[:2] for shift in (0, 16, 32, 48)]
    assert draws.words16(1234567, 7).tolist() == low[:7]


def test_keys_keep_their_parts_apart() -> None:
    keys = {draws.key_of(*parts) for parts in (("ab", "c"), ("a", "bc"), ("abc",), ("ab", "c", ""), (1, "1"), ("11",))}
    assert len(keys) == 6


def test_a_lookup_holds_its_weights() -> None:
    table = draws.lookup([2, 1, 1], 4096)
    assert np.bincount(table).tolist() == [2048, 1024, 1024]


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (NAMES, "e1d55ae9191e0b42cf41aff7cbfd80ebbd109cda2df8f4a71b675689b50db5c8"),
        (
            ("golf-cpu-v1", "lang/0", "val", "a secret"),
            "e6cfb9489c85b30669d5b8211e608236653995c4de2f28b0278fd2a2fcf22483",
        ),
        (
            ("golf-full-v1", "lang/17", "train", "geheim: ключ"),
            "44bc329aa51351cfd2613c6baa0795500e8ec5a67981bc41632ccd0b62b36ae2",
        ),
        (("golf-full-v1", "lang/31", "val", ""), "dc9d38b60dec4c6d5a2ad49e61da49525e899500e1b9bf24044bb5dec741e019"),
    ],
)
def test_streams_are_the_same_bits_everywhere(names: tuple[str, str, str, str], wanted: str) -> None:
    language.cache_clear()
    assert digest(*names) == wanted


def test_every_language_is_the_same_everywhere() -> None:
    together = hashlib.sha256()
    for task in TASKS:
        together.update(stream("golf-cpu-v1", task, "val", "s", 16_384).tobytes())
    assert together.hexdigest() == "cef9e23b1dec29ee1f81e862600b98fa50ca973c899720046443f2ccf7e2fc33"


@pytest.mark.parametrize("place", range(4))
def test_every_name_changes_the_text(place: int) -> None:
    other = ("golf-full-v1", "lang/1", "val", "another secret")
    changed = tuple(other[index] if index == place else name for index, name in enumerate(NAMES))
    profile_, task, split, secret = changed
    assert digest(*NAMES, size=2000) != digest(profile_, task, split, secret, size=2000)


@settings(max_examples=60, deadline=None)
@given(task=st.sampled_from(TASKS[:4]), size=st.integers(0, 6000))
def test_a_shorter_stream_is_the_start_of_a_longer_one(task: str, size: int) -> None:
    long, short = stream("p", task, "train", "s", 6000), stream("p", task, "train", "s", size)
    assert short.shape == (size,)
    text = short.tobytes().decode()  # valid wherever it ends
    cut = len(text.rstrip("\n").encode())
    assert np.array_equal(short[:cut], long[:cut])
    assert size - cut <= 3 or long[cut] == 10


def test_text_is_utf8_at_every_cut() -> None:
    whole = stream("p", "lang/2", "val", "s", 3000).tobytes()
    assert sum(byte > 0x7F for byte in whole[1000:1150]) > 4  # cuts inside characters are among these
    for size in range(1000, 1150):
        text = stream("p", "lang/2", "val", "s", size).tobytes()
        text.decode()
        assert len(text) == size


@pytest.mark.parametrize("task", TASKS)
def test_every_language_has_some_letters_beyond_ascii_and_no_control_characters(task: str) -> None:
    text = stream("golf-cpu-v1", task, "train", "s", 60_000).tobytes().decode()
    beyond = sum(character > "\x7f" for character in text) / len(text)
    assert 0.01 < beyond < 0.25
    assert not {character for character in text if not character.isprintable()} - {"\n", "\t"}
    assert "`" not in text  # a sample stands in a prompt's fence


def test_streams_run_on_past_a_block() -> None:
    """Blocks differ, and none is empty or cut short."""
    text = stream(*NAMES, 3_000_000)
    chunks = {hashlib.sha256(part.tobytes()).digest() for part in text.reshape(-1, 1000)}
    assert len(chunks) == 3000


def test_a_stream_can_not_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        stream(*NAMES, 10)[0] = 1
    with pytest.raises(ValueError, match="0 bytes or more, not -1"):
        stream(*NAMES, -1)


def test_24_megabytes_take_less_than_three_seconds() -> None:
    seconds = []
    for _ in range(3):  # the best of three: the machine may be busy
        language.cache_clear()
        started = time.process_time()
        assert stream(*NAMES, 24_000_000).size == 24_000_000
        seconds.append(time.process_time() - started)
    assert min(seconds) < 3


def test_the_secret_is_the_profiles_or_the_users_and_is_stored_as_a_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = profile("golf-cpu-v1")
    monkeypatch.delenv(SECRET_VARIABLE, raising=False)
    public = language_corpus(cpu, "lang/3")
    assert public.origin["secret_sha256"] == hashlib.sha256(cpu.public_secret.encode()).hexdigest()
    assert np.array_equal(public.val, stream(cpu.name, "lang/3", "val", cpu.public_secret, cpu.val_bytes))
    monkeypatch.setenv(SECRET_VARIABLE, "hunter2-hunter2")
    private = language_corpus(cpu, "lang/3")
    assert private.origin["secret_sha256"] == hashlib.sha256(b"hunter2-hunter2").hexdigest()
    assert (
        private.origin["val_sha256"] == hashlib.sha256(private.val.tobytes()).hexdigest() != public.origin["val_sha256"]
    )
    assert "hunter2" not in repr(private)
    assert (private.train.size, private.val.size) == (cpu.train_bytes, cpu.val_bytes)


def test_a_sample_is_of_no_split_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sample("lang/5", 1500)
    monkeypatch.setenv(SECRET_VARIABLE, "x")
    assert sample("lang/5", 1500) == before
    assert 900 < len(before.encode()) <= 1500
    for known in PROFILES.values():
        train = stream(known.name, "lang/5", "train", known.public_secret, 1_000_000).tobytes()
        assert not any(line.encode() in train for line in before.splitlines() if len(line) > 60)
