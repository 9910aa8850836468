"""Exported models in an object store, or any other file system of fsspec, which several servers share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from py_ort.compiler.package.read import Package
from py_ort.exceptions import EngineError


class ObjectStore:
    """Models by key, beside the folder of a server. Its methods block.

    Args:
        url: The place, such as `s3://bucket/models`; fsspec reads credentials and options from its own configuration.

    Raises:
        EngineError: fsspec or its driver is not installed, or the place cannot be written.
    """

    def __init__(self, url: str) -> None:
        try:
            import fsspec  # optional: the extra `fsspec`

            self._files, self._place = fsspec.core.url_to_fs(url)
            self._files.makedirs(self._place, exist_ok=True)
        except ImportError as e:
            raise EngineError(
                f"{url} needs a package that is not installed (pip install fsspec s3fs, for S3): {e}"
            ) from e
        except Exception as e:  # each file system has errors of its own
            raise EngineError(f"{url} cannot be used: {type(e).__name__}: {e}") from e

    def fetch(self, key: str, folder: Path) -> list[Path]:
        """Bring a model into a folder.

        Returns:
            Its files, the one to open first; none if the model is not there.

        Raises:
            EngineError: The store does not answer, or the model in it is damaged.
        """
        files: list[Path] = []
        try:
            while True:
                file = folder / (f"{key}.pyort.{len(files)}" if files else f"{key}.pyort")
                self._files.get_file(f"{self._place}/{file.name}", str(file))
                files.append(file)
        except FileNotFoundError:
            pass
        except Exception as e:
            raise EngineError(f"the object store did not return {key[:12]}: {type(e).__name__}: {e}") from e
        if files:
            Package(files[0])  # complete
        return files

    def put(self, files: Sequence[Path]) -> None:
        """Store a model's files.

        Raises:
            EngineError: The store does not take them.
        """
        try:
            for file in reversed(files):  # the first one says that all are there
                self._files.put_file(str(file), f"{self._place}/{file.name}")
        except Exception as e:
            raise EngineError(f"{files[0].name[:12]} could not be stored: {type(e).__name__}: {e}") from e
