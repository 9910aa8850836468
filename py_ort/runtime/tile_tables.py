"""Tables of the fastest tiles of products, measured on a device: `py-ort tune` writes tables, sessions read them.

A table is a file of the plan cache, for one adapter in one version of a browser, because other drivers and compilers
prefer other tiles. The file's name is a hash of both, and files of other devices are ignored. Each row is for one size
of a product. The page ignores tiles that no longer exist.

The configuration entry `session.tiles` is "1" for the device's table (the default, unless the session keeps no plans),
"0" for none, or the path of a JSON object of products and tiles.
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

from py_ort.compiler.load.model_files import make_private, open_file, replacing, shown
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
    """The device of a table.

    Attributes:
        browser: The browser and its version.
        vendor: The adapter's vendor, as WebGPU reports it, like `architecture`, `device` and `description`.
    """

    browser: str
    vendor: str
    architecture: str
    device: str
    description: str

    @classmethod
    def of(cls, browser: str, told: DeviceDescription) -> TunedDevice:
        """Return the device for a page's description."""
        return cls(browser, told["vendor"], told["architecture"], told["device"], told["description"])

    @property
    def name(self) -> str:
        """Name of the device, for people."""
        return f"{adapter_name(asdict(self))}, {self.browser}"

    @property
    def key(self) -> str:
        """Key of the device's table."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Measured:
    """A product on a device.

    Attributes:
        tile: The fastest tile.
        ms: Time with that tile.
        usual: The tile without a table.
        usual_ms: Time with the usual tile.
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
        """Return the tables of the user's cache, or None without a cache."""
        cache = PlanCache.default()
        return None if cache is None else cls(cache.folder)

    def load(self, device: TunedDevice) -> Mapping[str, Measured]:
        """Return the measurements on a device, by product."""
        found = self._read(self._path(device))
        return found.products if found and found.device == device else {}

    def prepare(self) -> None:
        """Create the folder if needed, and check that a table can be written.

        Raises:
            OSError: The folder cannot be written.
        """
        make_private(self.folder)
        with tempfile.TemporaryFile(dir=self.folder):
            pass

    def add(self, device: TunedDevice, products: Mapping[str, Measured]) -> None:
        """Add measurements to a device's table.

        Raises:
            OSError: The table cannot be written.
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
        """Remove all tables, also damaged ones; return their number."""
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
        except Exception as e:  # the file may contain anything
            _log.warning("the table of tiles %s is not used: %s: %s", path, type(e).__name__, e)
            return None


def tiles_for(entries: Mapping[str, str], runtime: PageRuntime) -> Mapping[str, str] | None:
    """Return the tiles of a session's products; None: there is no table.

    Args:
        entries: The session's configuration entries.
        runtime: The session's share of a page.

    Raises:
        InvalidArgument: The entry names a file without products and tiles.
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
