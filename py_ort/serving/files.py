"""Files of a folder over HTTP: ranges, ETags, types; nothing outside the folder, and nothing hidden."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

from aiohttp import web

from py_ort.content_types import content_type

_CHUNK = 1 << 20
_MODEL = content_type("model.pyort")


def _with_charset(name: str) -> str:
    found = content_type(name)
    return f"{found}; charset=utf-8" if found.startswith("text/") or found == "application/json" else found


def place(folder: Path, raw_path: str) -> Path | None:
    """Return where a URL's path leads, links followed; None if that is outside the folder, or hidden.

    Args:
        folder: The folder, resolved.
        raw_path: The path as the request has it, percent signs and all.
    """
    parts = [unquote(part) for part in raw_path.split("/") if part]
    if any(part.startswith(".") or set(part) & set("/\\\0:") for part in parts):
        return None
    try:
        real = folder.joinpath(*parts).resolve()
        real.exists()
    except (OSError, RuntimeError):  # a name that is too long, links in a circle
        return None
    return real if real.is_relative_to(folder) else None


async def send(request: web.Request, file: Path, name: str = "", keep: str = "") -> web.StreamResponse:
    """Answer with a file, or the range of it that is asked for.

    Args:
        request: GET or HEAD.
        file: A path without links.
        name: What decides about its type; "": its own.
        keep: How caches may keep it; "": they must ask, and models are not kept.
    """
    try:
        # A link that takes the file's place meanwhile is not followed.
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except OSError:
        raise web.HTTPNotFound from None
    with os.fdopen(handle, "rb") as opened:
        found = os.fstat(opened.fileno())
        tag = f"{found.st_mtime_ns:x}-{found.st_size:x}-{found.st_ino:x}"
        return await _send(request, opened, found.st_size, tag, _with_charset(name or file.name), keep)


async def send_bytes(request: web.Request, content: bytes, tag: str, kind: str) -> web.StreamResponse:
    """Answer with bytes that were made, as with a file."""
    import io

    return await _send(request, io.BytesIO(content), len(content), tag, kind)


async def _send(
    request: web.Request, opened: BinaryIO, size: int, tag: str, kind: str, keep: str = ""
) -> web.StreamResponse:
    # Models are not for the runtime's own cache, which asks nobody whether they are still the same.
    keep = keep or "no-store" if kind == _MODEL else "no-cache"
    headers = {"Content-Type": kind, "ETag": f'"{tag}"', "Cache-Control": keep, "Accept-Ranges": "bytes"}
    if request.if_none_match and any(each.value in (tag, "*") for each in request.if_none_match):
        return web.Response(status=304, headers=headers)
    start, end, status = 0, size, 200
    unchanged = request.headers.get("If-Range", f'"{tag}"') == f'"{tag}"'
    try:
        wanted = request.http_range if unchanged else slice(None)
        first, last, _ = wanted.indices(size)
        if wanted.start is not None or wanted.stop is not None:
            start, end, status = first, last, 206
            if start >= end:
                raise ValueError
    except ValueError:
        return web.Response(status=416, headers={"Content-Range": f"bytes */{size}"})
    if status == 206:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    response = web.StreamResponse(status=status, headers=headers)
    response.content_length = end - start
    await response.prepare(request)
    if request.method == "HEAD":
        return response
    opened.seek(start)
    while start < end:
        piece = await asyncio.to_thread(opened.read, min(_CHUNK, end - start))
        if not piece:  # it became shorter: what was promised cannot be kept
            if request.transport:
                request.transport.close()
            return response
        await response.write(piece)
        start += len(piece)
    await response.write_eof()
    return response
