"""A small part of Go's templates: what the chart uses of them, and nothing else.

`helm` cannot be had from the registries here. Anything that is not understood is an error, so that
the chart stays as simple as this.
"""

import json
import re

import yaml

_TAG = re.compile(r"(\s*)\{\{-\s*(.*?)\s*\}\}|\{\{\s*(.*?)\s*\}\}")


def rendered(chart, values=None, release="cosmo", namespace="shop"):
    """[document] of all templates with the chart's values, changed by these."""
    known = yaml.safe_load((chart / "values.yaml").read_text())
    scope = {
        "Values": _merged(known, values or {}),
        "Release": {"Name": release, "Namespace": namespace},
    }
    found = []
    for template in sorted((chart / "templates").glob("*.yaml")):
        text = _render(_tokens(template.read_text()), {"$": scope, ".": scope})
        found += [each for each in yaml.safe_load_all(text) if each is not None]
    return found


def _merged(base, more):
    if not isinstance(base, dict) or not isinstance(more, dict):
        return more
    return {**base, **{key: _merged(base.get(key), value) for key, value in more.items()}}


def _tokens(text):
    """Text and tags in turn; a dash takes the white space before a tag away."""
    found, at = [], 0
    for match in _TAG.finditer(text):
        found.append(("text", text[at : match.start()]))
        found.append(("tag", match[2] if match[2] is not None else match[3]))
        at = match.end()
    return [*found, ("text", text[at:])]


def _body(tokens):
    """The tokens up to the end of the block that has begun; the others stay."""
    depth, inner = 0, []
    while True:
        kind, content = tokens.pop(0)
        if kind == "tag" and content.split()[0] in ("if", "range"):
            depth += 1
        if (kind, content) == ("tag", "end"):
            if depth == 0:
                return inner
            depth -= 1
        inner.append((kind, content))


def _render(tokens, scope):
    tokens, found = list(tokens), ""
    while tokens:
        kind, content = tokens.pop(0)
        if kind == "text":
            found += content
        elif content.startswith("if "):
            condition, inner = content.removeprefix("if "), _body(tokens)
            wanted = not condition.startswith("not ")
            if bool(_value(condition.removeprefix("not "), scope)) == wanted:
                found += _render(inner, scope)
        elif content.startswith("range "):
            key, item, over = re.fullmatch(r"range (\$\w+), (\$\w+) := (\S+)", content).groups()
            inner = _body(tokens)
            for name, each in sorted(_value(over, scope).items()):
                found += _render(inner, {**scope, key: name, item: each})
        else:
            found += _piped(content, scope)
    return found


def _piped(content, scope):
    first, *filters = [part.strip() for part in content.split("|")]
    found = _value(first, scope)
    for each in filters:
        if each == "quote":
            found = json.dumps(str(found))
        elif match := re.fullmatch(r"nindent (\d+)", each):
            indent = " " * int(match[1])
            found = "\n" + "\n".join(indent + line for line in str(found).split("\n"))
        else:
            raise ValueError(f"{content!r}: not understood")
    return str(found)


def _value(path, scope):
    match = re.fullmatch(r"(\$\w*)?((?:\.\w+)*)", path)
    if match is None or not path:
        raise ValueError(f"{path!r}: not understood")
    found = scope[match[1] or "."]
    for name in match[2].split(".")[1:]:
        found = found[name]  # KeyError: the chart has no such value
    return found
