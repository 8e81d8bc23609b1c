"""JSON patch (RFC 6902) and merge patch (RFC 7386), as the API server applies them."""

from collections.abc import Mapping, Sequence

from videoflow.testing.kubernetes._copying import copied
from videoflow.testing.kubernetes._kinds import Json


class PatchFailed(Exception):
    """A patch that cannot be applied: a `test` that fails, or a path that is not there."""


def json_patch(document: Json, operations: Sequence[Mapping[str, Json]]) -> Json:
    """Returns the document after all operations; the argument stays as it is.

    Raises:
        PatchFailed: One of them cannot be applied, and so none is.
    """
    result = copied(document)
    for operation in operations:
        result = _apply(result, operation)
    return result


def merge_patch(document: Json, patch: Json) -> Json:
    """Returns the document after a merge patch; None removes a field."""
    if not isinstance(patch, dict):
        return copied(patch)
    result = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def _apply(document: Json, operation: Mapping[str, Json]) -> Json:
    name, path = operation.get("op"), _parts(operation.get("path", ""))
    match name:
        case "test":
            if _value(document, path) != operation.get("value"):
                raise PatchFailed(f"testing value {operation['path']} failed")
            return document
        case "add" | "replace" | "remove":
            value = copied(operation.get("value"))
            return _changed(document, path, name, value)
        case "move" | "copy":
            source = _parts(operation.get("from", ""))
            value = copied(_value(document, source))
            if name == "move":
                document = _changed(document, source, "remove", None)
            return _changed(document, path, "add", value)
        case _:
            raise PatchFailed(f"{name!r} is no operation of a JSON patch")


def _parts(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise PatchFailed(f"{pointer!r} is no JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _value(document: Json, path: Sequence[str]) -> Json:
    for part in path:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list) and part.isdecimal() and int(part) < len(document):
            document = document[int(part)]
        else:
            raise PatchFailed(f"there is nothing at /{'/'.join(path)}")
    return document


def _changed(document: Json, path: Sequence[str], name: str, value: Json) -> Json:
    if not path:
        return value
    holder, last = _value(document, path[:-1]), path[-1]
    if isinstance(holder, dict):
        if name != "add" and last not in holder:
            raise PatchFailed(f"there is nothing at /{'/'.join(path)}")
        if name == "remove":
            del holder[last]
        else:
            holder[last] = value
    elif isinstance(holder, list):
        _change_list(holder, last, name, value)
    else:
        raise PatchFailed(f"/{'/'.join(path[:-1])} holds nothing")
    return document


def _change_list(holder: list[Json], last: str, name: str, value: Json) -> None:
    if name == "add" and last == "-":
        holder.append(value)
        return
    if not last.isdecimal() or int(last) > len(holder) - (name != "add"):
        raise PatchFailed(f"{last!r} is no place in a list of {len(holder)}")
    if name == "add":
        holder.insert(int(last), value)
    elif name == "replace":
        holder[int(last)] = value
    else:
        del holder[int(last)]
