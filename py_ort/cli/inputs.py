"""Options for a model's inputs: --shape, --input and --dim, the same for all commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from py_ort.exceptions import InvalidArgument, RuntimeException
from py_ort.suggestion import did_you_mean

if TYPE_CHECKING:
    from py_ort import NodeArg, SessionOptions
    from py_ort.compiler.load import LoadedModel
    from py_ort.testing.model_inputs import ModelInputs
    from py_ort.testing.native_model import NativeModel


@dataclass(frozen=True)
class Inputs:
    """Shapes, contents and sizes given for inputs.

    Attributes:
        shapes: By input name.
        files: Contents of the files given, by input name.
        dims: Numbers for names of dimensions.
    """

    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    files: Mapping[str, np.ndarray] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)

    def known_shapes(self) -> dict[str, list[int]]:
        """Return the shapes that were given, those of files among them."""
        return {name: list(shape) for name, shape in self.shapes.items()} | {
            name: list(array.shape) for name, array in self.files.items()
        }

    def load(self, model: Path) -> LoadedModel:
        """Read a model, and check that it has the named inputs and dimensions.

        Raises:
            PyOrtError: As `load_model` does.
            click.BadParameter: It has no such input or dimension.
        """
        from py_ort.compiler import NodeArg
        from py_ort.compiler.load import load_model

        loaded = load_model(model)
        self.check(NodeArg.of(value) for value in loaded.model.graph.inputs)
        return loaded

    def describe(self, model: Path) -> ModelInputs:
        """Read the inputs of a model or `.pyort` file, and check that it has the named inputs and dimensions.

        Raises:
            PyOrtError: It cannot be read.
            click.BadParameter: It has no such input or dimension.
        """
        from py_ort.testing.model_inputs import ModelInputs

        found = ModelInputs.of(model)
        self.check((*found.args, *found.overridable))
        return found

    def __bool__(self) -> bool:
        """Return True if any option was given."""
        return bool(self.shapes or self.files or self.dims)

    def check(self, args: Iterable[NodeArg]) -> None:
        """Check that a model with these inputs has the named inputs and dimensions.

        Raises:
            click.BadParameter: It lacks one.
        """
        args = list(args)
        names = dict.fromkeys(arg.name for arg in args)
        dims = dict.fromkeys(dim for arg in args for dim in arg.shape if isinstance(dim, str) and dim)
        for option, what, given, known in (
            ("--shape", "input", self.shapes, names),
            ("--input", "input", self.files, names),
            ("--dim", "dimension with a name", self.dims, dims),
        ):
            for name in given:
                if name not in known:
                    there = ", ".join(map(repr, known)) or "none"
                    raise click.BadParameter(
                        f"the model has no {what} {name!r}{did_you_mean(name, known)}: it has {there}",
                        param_hint=option,
                    )

    def fix(self, options: SessionOptions, shapes: bool = False) -> SessionOptions:
        """Have sessions compile for these sizes.

        Args:
            options: Changed.
            shapes: True to fix the inputs' shapes, too, for sessions whose feeds always have these shapes.
        """
        for name, size in self.dims.items():
            options.add_free_dimension_override_by_name(name, size)
        for name, shape in self.known_shapes().items() if shapes else ():
            options.add_input_shape(name, shape)
        return options

    def accepted_feeds(self, model: Path, native: NativeModel) -> dict[str, np.ndarray]:
        """Return feeds for a model: the files, and random numbers of the first sizes that native onnxruntime accepts.

        Without onnxruntime, or if it accepts none, the numbers have the first sizes.
        """
        from py_ort.testing.random_feeds import candidates

        described = self.describe(model)
        with told_how_to_give(described.args, _NOT_YET):
            tried = list(
                candidates(described.args, self.shapes, given=self.files, dims=self.dims, values=described.accepted)
            )
        whole = [{**self.files, **feeds} for feeds in tried]
        found = native.first_taken(whole)
        return found[0] if found else whole[0]

    def feeds(
        self,
        args: Sequence[NodeArg],
        model: ModelInputs,
        **options: Any,
    ) -> dict[str, np.ndarray]:
        """Return feeds: the files, and random numbers for all other inputs.

        Args:
            args: The inputs that a session wants.
            model: The result of `describe`.
            **options: For `random_feeds`.
        """
        from py_ort.testing.random_feeds import random_feeds

        with told_how_to_give(args, _NOT_YET):
            made = random_feeds(
                args,
                self.shapes,
                given=self.files,
                dims=self.dims,
                values=model.accepted,
                **options,
            )
        return {**self.files, **made}


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --shape, --input and --dim; the command gets them as `inputs: Inputs`."""

    def with_inputs(
        *args: Any, shapes: dict[str, Any], files: dict[str, Any], dims: dict[str, Any], **options: Any
    ) -> Any:
        if twice := shapes.keys() & files.keys():
            raise click.BadParameter(f"{min(twice)} has a file, which has its shape", param_hint="--shape")
        return command(*args, inputs=Inputs(shapes, files, dims), **options)

    with_inputs.__name__, with_inputs.__doc__ = command.__name__, command.__doc__
    with_inputs.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in (_dim_option("dims"), _input_option("files"), _shape_option("shapes", _each(_SHAPE, _shape))):
        with_inputs = option(with_inputs)
    return with_inputs


def export_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --dim, --input, and --shape that may come again.

    The command gets `dims`, `files`, and `shapes`, a list of shapes by name.
    """
    text = "Add a plan for these shapes alone; a NAME that is repeated begins the next plan."
    return _dim_option("dims")(_input_option("files")(_shape_option("shapes", _rounds, text)(command)))


def dim_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --dim; the command gets `dims`."""
    return _dim_option("dims")(command)


_SHAPE = "x=1x3x224x224"


def _dim_option(name: str) -> Callable[..., Any]:
    return click.option(
        *("--dim", name),
        multiple=True,
        callback=_each("N=4", _number),
        metavar="NAME=NUMBER",
        help="Size of a named dimension; the model is compiled for this size.",
    )


def _input_option(name: str) -> Callable[..., Any]:
    return click.option(
        *("--input", name),
        multiple=True,
        callback=_each("x=x.npy", _contents),
        metavar="NAME=FILE",
        help="Contents of an input: a .npy file, or a .pb file as in ONNX's test data.",
    )


def _shape_option(
    name: str,
    callback: Callable[..., Any],
    text: str = "Shape of an input without --input; 'NAME=' is a scalar.",
) -> Callable[..., Any]:
    return click.option(*("--shape", name), multiple=True, callback=callback, metavar="NAME=1x3x224x224", help=text)


def _each(example: str, read: Callable[[str], Any]) -> Callable[..., dict[str, Any]]:
    """Read options of the form NAME=TEXT; names may hold "=", texts of --shape and --dim do not."""

    def callback(context: click.Context, parameter: click.Parameter, items: tuple[str, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for item in items:
            name, value = _pair(item, parameter, example, read)
            if name in found:
                raise click.BadParameter(f"{name} is given twice")
            found[name] = value
        return found

    return callback


def _rounds(context: click.Context, parameter: click.Parameter, items: tuple[str, ...]) -> list[dict[str, list[int]]]:
    """Read shapes; a repeated name begins another round."""
    rounds: list[dict[str, list[int]]] = []
    for item in items:
        name, value = _pair(item, parameter, _SHAPE, _shape)
        if not rounds or name in rounds[-1]:
            rounds.append({})
        rounds[-1][name] = value
    return rounds


def _pair(item: str, parameter: click.Parameter, example: str, read: Callable[[str], Any]) -> tuple[str, Any]:
    name, equals, text = item.partition("=") if read is _contents else item.rpartition("=")
    if not equals or not name:
        raise click.BadParameter(f"expected {parameter.metavar}, got {item!r}")
    try:
        return name, read(text)
    except ValueError as e:
        raise click.BadParameter(f"{item!r}: {str(e) or f'expected {parameter.metavar}, e.g. {example}'}") from e


#: Largest size of a dimension.
_MOST = 2**31 - 1


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise ValueError
    if len(digits := text.lstrip("0")) > len(str(_MOST)) or int(digits or "0") > _MOST:
        raise ValueError(f"a dimension has at most {_MOST}")
    return int(digits or "0")


def _shape(text: str) -> list[int]:
    return [_number(size) for size in text.split("x")] if text else []


def _load(file: str) -> Any:
    try:
        return np.load(file)
    except ValueError as e:
        if "allow_pickle" in str(e):
            raise ValueError("it holds Python objects; save strings with np.save(file, array.astype(str))") from e
        raise


def _contents(text: str) -> np.ndarray:
    try:
        if not text.endswith(".pb"):
            array = _load(text)
            if not isinstance(array, np.ndarray):
                raise ValueError("it holds several arrays; give a .npy file")
            return array
        import onnx

        return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(Path(text).read_bytes()))
    except OSError as e:
        raise ValueError(e.strerror or str(e)) from e
    except Exception as e:  # a file may hold anything
        raise ValueError(f"it is no .npy file, nor a .pb file with a tensor: {e}") from e


#: Feeds of a run that has none yet.
_NOT_YET: dict[str, Any] = {}


@contextmanager
def told_how_to_give(args: Sequence[NodeArg], feeds: Mapping[str, Any], given: Iterable[str] = ()) -> Iterator[None]:
    """Add to errors of a run the options that give its inputs, if we chose them.

    Args:
        args: The model's inputs.
        feeds: Feeds of the run.
        given: The names of those that the user chose.
    """
    try:
        yield
    except (InvalidArgument, RuntimeException) as e:
        chosen = [arg for arg in args if arg.name not in set(given)]
        if chosen:
            e.message = f"{e.message}\n  {_how_to_give(chosen, feeds, str(e.message))}"
        raise


def _how_to_give(args: Sequence[NodeArg], feeds: Mapping[str, Any], error: str) -> str:
    """Return the options that give inputs, those of the input that an error names."""
    random = ", ".join(f"{arg.name} {list(feeds[arg.name].shape)}" for arg in args if arg.name in feeds)
    arg = next((arg for arg in args if re.search(rf"(?<!\w){re.escape(arg.name)}(?!\w)", error)), args[0])
    names = [dim for dim in arg.shape if isinstance(dim, str) and dim]
    ways = [f"--dim {names[0]}=NUMBER"] if names else []
    if arg.dims is None or not all(isinstance(dim, int) for dim in arg.dims):
        ways.append(f"--shape {arg.name}={'x'.join(_sizes(arg))}")
    ways.append(f"--input {arg.name}=FILE.npy")
    fed = f"fed were random numbers: {random}; give others" if random else "give them"
    return f"{fed} with {' or '.join(ways)}"


def _sizes(arg: NodeArg) -> list[str]:
    """Return sizes of an input: its own, and likely ones where it has none."""
    likely = ["1", "3", "224", "224", "1"]
    dims = arg.dims or [None] * 4
    return [str(dim) if isinstance(dim, int) else size for dim, size in zip(dims, likely, strict=False)]
