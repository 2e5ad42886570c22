"""The output formats of a preview, on the command line and over HTTP: one file and one line each.

--help lists them in this order. Over HTTP, the first is the default; if `Accept` gives two the same
quality, the earlier one is chosen.
"""

from __future__ import annotations

from webhook.preview.formats.diff_format import FORMAT as DIFF
from webhook.preview.formats.format import Format
from webhook.preview.formats.json_format import FORMAT as JSON
from webhook.preview.formats.patch_format import FORMAT as PATCH
from webhook.preview.formats.text_format import FORMAT as TEXT
from webhook.preview.formats.yaml_format import FORMAT as YAML

FORMATS: tuple[Format, ...] = (JSON, YAML, TEXT, PATCH, DIFF)
BY_NAME = {one.name: one for one in FORMATS}
#: The formats that are served over HTTP.
SERVED = tuple(one for one in FORMATS if one.media_types)
