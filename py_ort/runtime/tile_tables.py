"""Tiles that products take on a device, as they were measured there: `py-ort tune` writes tables, sessions read them.

A table is a file of the plan cache. It is for one adapter in one version of a browser: with another driver or compiler
other tiles may be quicker, so its name is a hash of what the page says of both, and a file that is of another device is
passed over. What it says of a product holds for that size alone; tiles that are no more are passed over in the page.

The configuration entry `session.tiles`: "1" (the default, unless the session keeps no plans): the device's table; "0":
none; else the path of a JSON object of products and tiles.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py_ort.compiler.load.files import make_private, open_file, replacing, shown
from py_ort.compiler.plan.cache import PlanCache
from py_ort.exceptions import InvalidArgument
from py_ort.runtime.probe import adapter_name

if TYPE_CHECKING:
    from py_ort.runtime.page_runtime import PageRuntime
    from py_ort.wire.json_fields import DeviceDescription

ENTRY = "session.tiles"
_log = logging.getLogger("py_ort")
_SUFFIX = ".tiles"
_VERSION = 1


@dataclass(frozen=True)
class TunedDevice:
    """What a table is for.

    Attributes:
        browser: And its version.
        vendor: As the adapter calls itself; so are `architecture`, `device` and `description`.
    """

    browser: str
    vendor: str
    architecture: str
    device: str
    description: str

    @classmethod
    def of(cls, browser: str, told: DeviceDescription) -> TunedDevice:
        """Return it of what a page tells."""
        return cls(browser, told["vendor"], told["architecture"], told["device"], told["description"])

    @property
    def name(self) -> str:
        """For people."""
        return f"{adapter_name(asdict(self))}, {self.browser}"

    @property
    def key(self) -> str:
        """What its table is found by."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Measured:
    """A product on a device.

    Attributes:
        tile: The quickest.
        ms: What it takes.
        usual: The tile that it has without a table.
        usual_ms: What that takes.
    """

    tile: str
    ms: float
    usual: str
    usual_ms: float


@dataclass(frozen=True)
class TileTable:
    """A table of the cache."""

    path: Path
    device: TunedDevice
    products: Mapping[str, Measured]


class TileTables:
    """The tables of a plan cache's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def default(cls) -> TileTables | None:
        """Return those of the user's cache, or None where there is none."""
        cache = PlanCache.default()
        return None if cache is None else cls(cache.folder)

    def load(self, device: TunedDevice) -> Mapping[str, Measured]:
        """Return what was measured on a device."""
        found = self._read(self._path(device))
        return found.products if found and found.device == device else {}

    def prepare(self) -> None:
        """Make the folder, if it is not there, and see that a table can be written.

        Raises:
            OSError: It cannot.
        """
        make_private(self.folder)
        with tempfile.TemporaryFile(dir=self.folder):
            pass

    def add(self, device: TunedDevice, products: Mapping[str, Measured]) -> None:
        """Keep what was measured, beside what is known of other products.

        Raises:
            OSError: It cannot be written.
        """
        make_private(self.folder)
        known = {**self.load(device), **products}
        table = {name: asdict(measured) for name, measured in sorted(known.items())}
        with replacing(self._path(device)) as file:
            file.write(json.dumps({"version": _VERSION, "device": asdict(device), "products": table}).encode())

    def entries(self) -> list[TileTable]:
        """Return all tables."""
        read = [self._read(path) for path in sorted(self.folder.glob(f"*{_SUFFIX}"))]
        return [table for table in read if table]

    def clear(self) -> int:
        """Remove all tables, damaged ones, too; return how many there were."""
        paths = list(self.folder.glob(f"*{_SUFFIX}"))
        for path in paths:
            with contextlib.suppress(OSError):  # the folder may be for reading only
                path.unlink()
        return len(paths)

    def _path(self, device: TunedDevice) -> Path:
        return self.folder / (device.key + _SUFFIX)

    def _read(self, path: Path) -> TileTable | None:
        try:
            with open_file(path, own=True) as file:
                found = json.loads(file.read())
            if found["version"] != _VERSION:
                return None
            products = {str(name): Measured(**measured) for name, measured in found["products"].items()}
            return TileTable(path, TunedDevice(**found["device"]), products)
        except FileNotFoundError:
            return None
        except Exception as e:  # whoever wrote it may have written anything
            _log.warning("the table of tiles %s is not used: %s: %s", path, type(e).__name__, e)
            return None


def tiles_for(entries: Mapping[str, str], runtime: PageRuntime) -> Mapping[str, str] | None:
    """Return the tiles of a session's products; None: there is no table.

    Args:
        entries: Of its configuration.
        runtime: The page that it is in.

    Raises:
        InvalidArgument: The entry names a file that is none of products and tiles.
    """
    asked = entries[ENTRY] if ENTRY in entries else "0" if entries.get("session.plan_cache") == "0" else "1"
    if asked not in ("0", "1"):
        return _of_file(Path(asked))
    told = runtime.tuned_device
    tables = TileTables.default() if asked == "1" and told else None
    if tables is None or told is None:
        return None
    return {
        name: measured.tile
        for name, measured in tables.load(TunedDevice.of(runtime.lease.launcher.description, told)).items()
    } or None


def _of_file(path: Path) -> Mapping[str, str]:
    try:
        with open_file(path) as file:
            found: Any = json.loads(file.read())
    except (OSError, ValueError, RecursionError) as e:
        raise InvalidArgument(
            f'{ENTRY}={shown(str(path))}: "0", "1", or a JSON file of products and tiles, which cannot be read: {e}'
        ) from None
    if not isinstance(found, dict) or not all(isinstance(tile, str) for tile in found.values()):
        raise InvalidArgument(f"{ENTRY}={shown(str(path))} is no JSON object of products and their tiles")
    return found
