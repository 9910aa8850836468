"""Names that the author of a model may choose."""

from __future__ import annotations

#: Markup, script, the end of a script element, text that breaks JavaScript, rare characters.
HOSTILE = (
    "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
    "&lt;b&gt;<!--<script>\u2028'\"`${1}]]>{{ 7 * 7 }}{% raw %}\u202e\x00\ud7ff"
)
HUGE = "layer/" * 20_000
