"""Types for unchecked JSON: the only use of `typing.Any` in this project.

They are for the original pod (`model.pod`), for YAML (`text.yaml`) and for bodies that another
program reads or writes. Everywhere else a value has a type, or is an `object` whose class is
checked before it is used.
"""

from __future__ import annotations

from typing import Any, TypeAlias

#: A JSON value: a string, a number, a boolean, None, a list, or a dict whose keys are strings.
Json: TypeAlias = Any
#: A JSON object.
JsonObject: TypeAlias = dict[str, Json]
