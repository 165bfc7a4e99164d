"""JSON of the program as the dataclasses of :mod:`quorate.models`. What does not fit is an error with its place."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from typing import Any, Literal, TypeVar, Union, cast

from ._errors import Diagnostic, ProgramError, QuorateError
from ._program import Answer

T = TypeVar("T")


class _Unfit(Exception):
    """A value that is not of its type; the text begins with its place."""


def decode(kind: type[T], answer: Answer, *, exits: range) -> T:
    """The object that the program printed, if it ended with an exit code that goes with one.

    Raises what it refused else.
    """
    try:
        value = json.loads(answer.output)
    except ValueError:
        value = None
    if isinstance(value, dict) and isinstance(value.get("diagnostics"), list) and "schema" not in value:
        raise _refused(answer, value["diagnostics"])
    if answer.exit not in exits or not isinstance(value, dict):
        raise _failed(answer)
    try:
        return cast(T, _value(kind, value, ""))
    except _Unfit as unfit:
        message = f"the program printed JSON that this package does not know: {unfit}"
        raise ProgramError(message, code="python:output_unknown", exit=answer.exit) from None


def _refused(answer: Answer, printed: list[Any]) -> QuorateError:
    try:
        diagnostics = [cast(Diagnostic, _value(Diagnostic, one, f"diagnostics[{at}]")) for at, one in enumerate(printed)]
    except _Unfit as unfit:
        return ProgramError(f"the program refused: {unfit}", code="python:output_unknown", exit=answer.exit)
    first = next((one for one in diagnostics if one.severity == "refusal"), None)
    if first is None:
        return _failed(answer)
    message = first.message if first.help is None else f"{first.message} ({first.help})"
    return QuorateError(f"{first.code}: {message}", code=first.code, exit=answer.exit, diagnostics=diagnostics)


def _failed(answer: Answer) -> QuorateError:
    said = answer.errors.strip()[-2000:] or "it said nothing"
    if answer.exit == 64:
        return QuorateError(said, code="quorate:usage", exit=answer.exit)
    return ProgramError(f"quorate ended with {answer.exit}: {said}", code="python:program_failed", exit=answer.exit)


def _value(kind: Any, value: object, place: str) -> object:
    if kind is object or kind is Any:
        return value
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _dataclass(kind, value, place)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        return _either(inner, value, place)
    if origin is Literal:
        if any(value == word and type(value) is type(word) for word in inner):
            return value
        raise _Unfit(f"{place or 'it'} is {value!r}, which is none of {', '.join(map(repr, inner))}")
    if origin is tuple:
        if not isinstance(value, list):
            raise _unlike("a list", value, place)
        return tuple(_value(inner[0], item, f"{place}[{at}]") for at, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise _unlike("an object", value, place)
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # `True` is an `int` to Python alone.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _unlike(kind.__name__, value, place)
    return value


def _either(kinds: tuple[Any, ...], value: object, place: str) -> object:
    if value is None and types.NoneType in kinds:
        return None
    unfit = _Unfit(f"{place or 'it'} fits nothing")
    for kind in kinds:
        if kind is not types.NoneType:
            try:
                return _value(kind, value, place)
            except _Unfit as error:
                unfit = error
    raise unfit


def _dataclass(kind: type, value: object, place: str) -> object:
    if not isinstance(value, dict):
        raise _unlike("an object", value, place)
    hints = typing.get_type_hints(kind)
    found: dict[str, object] = {}
    for field in dataclasses.fields(kind):
        key = field.metadata.get("json", field.name)
        below = f"{place}.{key}" if place else key
        if key in value:
            found[field.name] = _value(hints[field.name], value[key], below)
        elif field.default is dataclasses.MISSING:
            raise _Unfit(f"{below} is missing")
    return kind(**found)


def _unlike(wanted: str, value: object, place: str) -> _Unfit:
    return _Unfit(f"{place or 'it'} is {type(value).__name__}, not {wanted}")
