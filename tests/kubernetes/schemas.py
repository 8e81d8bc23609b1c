"""Strict schemas of every server's version, each read once."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import kubernetes_validate
from kubernetes_validate import utils

VERSIONS = ("1.34", "1.35", "1.36", "1.37")

# The library reads some ten megabytes of definitions anew for every object that it looks at.
utils.schema_contents = cache(utils.schema_contents)


def check(manifest: Mapping[str, Any], versions: tuple[str, ...] = VERSIONS) -> None:
    """Raises where a manifest is not valid for one of these servers."""
    for version in versions:
        kubernetes_validate.validate(dict(manifest), version, strict=True)
