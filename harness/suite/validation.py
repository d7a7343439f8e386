"""Types of the suite language for pydantic, and the place in the file of each fault that pydantic finds.

Pydantic is slow to import, so others import this module where they check a file, not at their top.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    create_model,
)
from pydantic_core import PydanticCustomError

from harness.errors import did_you_mean
from harness.hparams import HParam
from harness.suite.components import coerced
from harness.suite.settings import FAULTY, ROWS, is_label
from harness.suite.tree import Items, Leaf, Place, Problems, Table, Tree, describe, plain

Loc = tuple[Any, ...]
Schema = dict[str, Any]
Fields = Mapping[str, tuple[Any, str]]
"""Key -> the type of its value, and a line for people."""
KEY = "[key]"
"""The last step of a location that means the key instead of its value, as pydantic writes it."""
EXAMPLES = {
    "datasets": "{SPMotif: {use: spmotif}}",
    "methods": "{ERM: {baseline: erm}}",
    "cluster": "{kind: slurm, workers: 8}",
    "tune": "{sampler: tpe, trials: 20}",
}
"""Examples of some tables, for messages."""


def fault(text: str) -> PydanticCustomError:
    """A fault of a value; ``{title}`` in the text stands for the value's name in messages."""
    return PydanticCustomError("fault", "{text}", {"text": text})


def faults(found: Iterable[tuple[Loc, str]]) -> None:
    """Refuse values inside of this one, each with its location there.

    Raises:
        ValidationError: there is at least one.
    """
    lines: Any = [{"type": fault(text), "loc": loc, "input": None} for loc, text in found]
    if lines:
        raise ValidationError.from_exception_data("faults", lines)


def checked_type(check: Callable[[Any], Any], kind: Any = Any, *, schema: Schema | None = None) -> Any:
    """A type whose values a function checks, and may convert, before pydantic does."""
    extra = () if schema is None else (WithJsonSchema(schema),)
    return Annotated[kind, BeforeValidator(check), *extra]


def table_of(name: str, fields: Fields, *, rest: bool = False, check: Any = None) -> Any:
    """A table with these keys, all of which may be absent; with ``rest`` also with others."""
    config = ConfigDict(extra="allow" if rest else "forbid", strict=True)
    declared: Any = {  # a default without a factory would stand in the schema
        key: (kind, Field(default_factory=lambda: None, description=text or None))
        for key, (kind, text) in fields.items()
    }
    model = create_model(name, __config__=config, **declared)
    return model if check is None else Annotated[model, AfterValidator(check)]


# Values


def value_schema(declared: HParam) -> dict[str, Any]:
    """The JSON Schema of a hyperparameter's value."""
    types = {"bool": "boolean", "int": "integer", "float": "number", "str": "string", "dict": "object"}
    many = declared.type.startswith("list[")
    item: dict[str, Any] = {"type": types[declared.type[5:-1] if many else declared.type]}
    bounds = {"enum": declared.choices and list(declared.choices), "minimum": declared.low, "maximum": declared.high}
    item |= {name: bound for name, bound in bounds.items() if bound is not None}
    schema: dict[str, Any] = {"type": "array", "items": item} if many else item
    if declared.optional:
        schema = {"anyOf": [schema, {"type": "null"}]}
    return schema | {"default": declared.default} | ({"description": declared.help} if declared.help else {})


def typed(declared: HParam) -> Any:
    """The type of a hyperparameter's value."""

    def convert(value: Any) -> Any:
        try:
            return coerced(declared, value)
        except ValueError as error:
            raise fault(str(error)) from None

    return checked_type(convert, schema=value_schema(declared))


def settings(name: str, declared: Mapping[str, HParam], more: Fields = MappingProxyType({}), **options: Any) -> Any:
    """A table of hyperparameters or settings, and of what else may stand there."""
    return table_of(name, {**more, **{key: (typed(item), item.help) for key, item in declared.items()}}, **options)


# Names, lists, rows


def check_name(value: Any) -> Any:
    if not isinstance(value, str) or not value.strip():
        raise fault(f"{{title}} takes a name, found {describe(value)}")
    return value


def _label(value: str) -> str:
    if not is_label(value):
        raise fault("a name in {table} must be printable text of 1 to 200 characters")
    return value


def _several(value: Any) -> Any:
    if value is None:
        raise fault("{title} is empty; it is a list")
    return value if isinstance(value, list) else [value]


def list_of(item: Any) -> Any:
    """A list; one value alone stands for a list of it."""
    return Annotated[list[item], BeforeValidator(_several)]


def rows_of(row: Any, least: int = 1) -> Any:
    """Rows by their labels."""
    return Annotated[dict[checked_type(_label, str), row], Field(min_length=least or None)]  # type: ignore[misc]


def name_of(known: Collection[str], what: str) -> Any:
    """One of these names; ``what`` begins with what they name, for the message "no … called 'x'"."""

    def check(value: Any) -> Any:
        if check_name(value) not in known:
            hint = did_you_mean(value, known)
            raise fault(f"no {what} called '{value}'{hint}; there are: {', '.join(known)}")
        return value

    return checked_type(check, str, schema={"enum": list(known)})


Name = checked_type(check_name, str)
Names = list_of(Name)


# Reading


def checked(model: Any, tree: Any, problems: Problems, title: str) -> tuple[Any, Any]:
    """A table without its faulty parts, whose faults are noted, and the model's instance where there are none.

    A faulty row is emptied and marked, so that what it lacks is not noted as well; else a faulty key is left out.
    ``title`` is the table's name in messages.
    """
    try:
        return tree, _adapter(model).validate_python(plain(tree))
    except ValidationError as error:
        lines = error.errors(include_url=False, include_input=False)
    for line in lines:
        loc = line["loc"]
        value, place = _at(tree, (*loc, KEY) if line["type"] in ("extra_forbidden", "too_short") else loc)
        problems.add(place, _text(model, line, value, title))
    for loc in {line["loc"][:2] for line in lines}:
        tree = _without(tree, loc)
    return tree, None


_adapter = cache(TypeAdapter)


def _at(tree: Tree, loc: Loc) -> tuple[Tree, Place]:
    """The value at a location, and the place of its key or of itself."""
    place = tree.place
    for step in loc:
        if step == KEY:
            return tree, place
        if isinstance(tree, Table) and step in tree.entries:
            place, tree = tree.key(step), tree.entries[step]
        elif isinstance(tree, Items) and isinstance(step, int):
            tree = tree.items[step]
            place = tree.place
    return tree, tree.place


def _without(tree: Any, loc: Loc) -> Any:
    if not isinstance(tree, Table) or not loc:
        return tree
    if loc[0] not in ROWS:
        return tree.without(loc[:1])
    rows = tree.table(loc[0])
    if loc[1:] and loc[1] in rows:
        rows = rows.put(loc[1], Table(rows.place, {FAULTY: Leaf(True, rows.place)}))
    return tree.put(loc[0], rows)


def _text(model: Any, line: Any, value: Tree, title: str) -> str:
    """Return the message of a fault."""
    kind, loc = line["type"], tuple(step for step in line["loc"] if step != KEY)
    if kind == "fault":
        text: str = line["ctx"]["text"]
        return text.replace("{title}", _title(loc, title)).replace("{table}", _title(loc[:-1], title))
    if kind == "extra_forbidden":
        allowed = _keys(model, loc[:-1])
        hint = f"{did_you_mean(str(loc[-1]), allowed)}; allowed: {', '.join(allowed)}"
        return f"unknown key '{loc[-1]}' in {_title(loc[:-1], title)}{hint}"
    what = _title(loc, title)
    example = EXAMPLES.get(what.strip("'"))
    if kind == "too_short":
        return f"{what} is empty; it is a table such as {example}"
    return f"{what} is a table{f' such as {example}' if example else ''}, found {describe(value)}"


def _title(loc: Loc, title: str) -> str:
    """Return the name of the value at a location in messages."""
    if not loc:
        return title
    if len(loc) == 2 and loc[0] in ROWS:
        return f"{ROWS[str(loc[0])]} '{loc[1]}'"
    return f"'{loc[-1]}'" if isinstance(loc[-1], str) else _title(loc[:-1], title)


def _keys(model: Any, loc: Loc) -> list[str]:
    """The keys that the table at a location may have."""
    while get_origin(model) in (Annotated, UnionType, Union):  # a union is that of a table and None
        model = get_args(model)[0]
    if isinstance(model, type) and issubclass(model, BaseModel):
        return _keys(model.model_fields[str(loc[0])].annotation, loc[1:]) if loc else list(model.model_fields)
    return _keys(get_args(model)[-1], loc[1:])
