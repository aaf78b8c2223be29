"""Text like code: functions with nested blocks, brackets, indentation, and variables that are used again."""

from __future__ import annotations

from collections.abc import Sequence

from weightgym.rewards.golf.data.draws import Draws
from weightgym.rewards.golf.data.slots import Line, Pick, Register, Slot, Template
from weightgym.rewards.golf.data.words import ADVERB, DIALECTS, NOUN, VERB, Lexicon

FUNCTIONS = 120
_KINDS = 9
HEAD, SET, CALL, IF, LOOP, RETURN, REMARK, CLOSE, GAP = range(_KINDS)


class Code:
    """The programming language of a language: keywords, brackets and operators, in each dialect."""

    def __init__(self, draws: Draws, lexicon: Lexicon) -> None:
        self._draws, self._lexicon, self._pool = draws, lexicon, lexicon.pool
        function, self._if, self._loop, self._return, self._in, end = (lexicon.particles(draws) for _ in range(6))
        self._function = function
        self._close = [draws.one(("}", "]", ")", word)) for word in end]
        self._open = [{"}": " {", "]": " [", ")": " ("}.get(text, draws.one((":", "", " ~"))) for text in self._close]
        self._stop = self._each((";", "", ".", "!"))
        self._equals = self._each((" = ", " := ", " <- ", "=", ": "))
        self._remark = self._each(("# ", "// ", "-- ", "% ", "* "))
        self._quote = self._each(('"', "'", "|", "$"))
        self._joint = self._each(("_", ".", "-", "::", "@"))
        self._operators = [self._each((" + ", " - ", " * ", " / ", " % ", " & ", " ^ ", "+", "*")) for _ in range(4)]
        self._relations = [self._each((" < ", " > ", " == ", " != ", " <= ", "=", "<", ">")) for _ in range(3)]
        width = draws.one((2, 4))
        self._indents = self._pool.extend(" " * width * depth for depth in range(6))

    def register(self, kinds: list[list[Template]], share: int) -> Register:
        """Adds the kinds of lines of code to ``kinds``; returns its functions."""
        first = len(kinds)
        makers = (
            self._head,
            self._set,
            self._call,
            self._if_line,
            self._loop_line,
            self._return_line,
            self._remark_line,
        )
        for maker in makers:
            kinds.append([(*self._start(), *maker(), *self._lit("\n")) for _ in range(24)])
        kinds.append([(*self._start(), *self._say(self._close, after="\n"))])
        kinds.append([tuple(self._lit("\n"))])
        skeletons = []
        for _ in range(FUNCTIONS):
            lines: list[tuple[int, int]] = [(REMARK, 0)] if self._draws.chance(25) else []
            lines += [(HEAD, 0), *self._body(1), (CLOSE, 0), (GAP, 0)]
            skeletons.append(tuple(Line(first + kind, depth) for kind, depth in lines))
        return Register(share, skeletons, (5, 13))

    def _body(self, depth: int) -> list[tuple[int, int]]:
        lines: list[tuple[int, int]] = []
        for _ in range(1 + self._draws.below(4)):
            kind = self._draws.one((SET, SET, CALL, CALL, IF, LOOP, REMARK))
            if kind in (IF, LOOP) and depth < 4:
                lines += [(kind, depth), *self._body(depth + 1), (CLOSE, depth)]
            else:
                lines.append((SET if kind in (IF, LOOP) else kind, depth))
        return [*lines, (RETURN, depth)] if self._draws.chance(45 if depth == 1 else 20) else lines

    def _each(self, texts: Sequence[str]) -> list[str]:
        """One of the texts for each dialect."""
        return [self._draws.one(texts) for _ in range(DIALECTS)]

    def _say(self, texts: list[str], before: str = "", after: str = "") -> list[Slot]:
        """The text of the document's dialect."""
        return [Slot(self._pool.extend(before + text + after for text in texts), Pick.DIALECT, 1)]

    def _lit(self, text: str) -> list[Slot]:
        return [Slot(self._pool.literal(text))] if text else []

    def _start(self) -> list[Slot]:
        return [Slot(self._indents, Pick.INDENT)]

    def _variable(self) -> list[Slot]:
        return [Slot(self._lexicon.bases[NOUN], Pick.KEPT_WORD, NOUN, which=self._draws.below(4), glue=True)]

    def _routine(self) -> list[Slot]:
        verb = Slot(self._lexicon.bases[VERB], Pick.KEPT_WORD, VERB, which=self._draws.below(6), glue=True)
        return [verb, *self._say(self._joint), *self._variable()]

    def _value(self, depth: int = 0) -> list[Slot]:
        draws = self._draws
        choice = draws.below(10)
        if choice < 4:
            return self._variable()
        if choice < 6:
            return [Slot(self._lexicon.numbers, Pick.NUMBER, draws.one((10, 10, 100, 1000)))]
        if choice < 7:
            word = Slot(self._lexicon.bases[NOUN], Pick.WORD, NOUN, glue=True)
            return [*self._say(self._quote), word, *self._say(self._quote)]
        if choice < 8:
            return [*self._variable(), *self._lit("["), *self._variable(), *self._lit("]")]
        if depth == 2:
            return self._variable()
        if choice < 9:
            return [*self._lit("("), *self._sum(depth + 1), *self._lit(")")]
        return [*self._routine(), *self._arguments(depth + 1)]

    def _sum(self, depth: int = 0) -> list[Slot]:
        return [*self._value(depth), *self._say(self._draws.one(self._operators)), *self._value(depth)]

    def _arguments(self, depth: int = 0) -> list[Slot]:
        slots = self._lit("(")
        for index in range(self._draws.below(4)):
            slots += [*(self._lit(", ") if index else []), *self._value(depth)]
        return [*slots, *self._lit(")")]

    def _condition(self) -> list[Slot]:
        return [*self._variable(), *self._say(self._draws.one(self._relations)), *self._value()]

    def _head(self) -> list[Slot]:
        arguments = [slot for index in range(1 + self._draws.below(3))
                     for slot in (*(self._lit(", ") if index else []), *self._variable())]  # fmt: skip
        name = Slot(self._lexicon.bases[VERB], Pick.WORD, VERB, glue=True)
        called = [*self._say(self._function, after=" "), name, *self._say(self._joint), *self._variable()]
        return [*called, *self._lit("("), *arguments, *self._say(self._open, before=")")]

    def _set(self) -> list[Slot]:
        value = self._sum() if self._draws.chance(55) else self._value()
        return [*self._variable(), *self._say(self._equals), *value, *self._say(self._stop)]

    def _call(self) -> list[Slot]:
        return [*self._routine(), *self._arguments(), *self._say(self._stop)]

    def _if_line(self) -> list[Slot]:
        return [*self._say(self._if, after=" "), *self._condition(), *self._say(self._open)]

    def _loop_line(self) -> list[Slot]:
        return [*self._say(self._loop, after=" "), *self._variable(), *self._say(self._in, " ", " "), *self._value(),
                *self._say(self._open)]  # fmt: skip

    def _return_line(self) -> list[Slot]:
        return [*self._say(self._return, after=" "), *self._value(), *self._say(self._stop)]

    def _remark_line(self) -> list[Slot]:
        words = [Slot(self._lexicon.bases[c], Pick.WORD, c) for c in self._draws.some((NOUN, VERB, NOUN, ADVERB), 3)]
        return [*self._say(self._remark), *self._variable(), *words]
