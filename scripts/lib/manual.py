"""Makes the manual page of a program from what it says of itself, so that the two cannot differ.

    PROGRAM --experimental-dump-help | python3 scripts/lib/manual.py MORE VERSION DATE >PAGE

MORE is a file with sections that no `--help` has (ENVIRONMENT, EXAMPLES, SEE ALSO), in mdoc(7). DATE
is what the page says of its age, as 2026-11-21.
"""
import datetime
import json
import pathlib
import sys

# The dump of swift-argument-parser has no other version.
SERIALIZATION = 0


def line(text):
    """Text on a line of its own: nothing in it is a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")
    return "\\&" + text if text[:1] in (".", "'") else text


def sentences(text):
    """Paragraphs, each sentence on a line: what mdoc(7) asks for."""
    out = []
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            out.append(".Pp")
        for sentence in " ".join(paragraph.split()).replace(". ", ".\n").split("\n"):
            out.append(line(sentence))
    return out


def shown(items):
    return [item for item in items if item.get("shouldDisplay", True)]


def commands(command):
    """Without `help`, which every program has."""
    found = shown(command.get("subcommands", []))
    return [child for child in found if child["commandName"] != "help"]


def flag(name):
    """`-x` or `--long`, as arguments of a macro."""
    dashes = {"short": "", "long": "\\-", "longWithSingleDash": ""}[name["kind"]]
    return f"Fl {dashes}{name['name']}"


def value(argument):
    return "" if argument["kind"] == "flag" else f" Ar {argument['valueName']}"


def synopsis(path, command):
    yield f".Nm {path}"
    for argument in shown(command.get("arguments", [])):
        if argument["kind"] == "positional":
            item = f"Ar {argument['valueName']}" + (" ..." if argument["isRepeating"] else "")
        elif argument["preferredName"]["name"] in ("help", "version"):
            continue
        else:
            item = flag(argument["preferredName"]) + value(argument)
        yield f".Op {item}" if argument["isOptional"] else f".{item}"
    if commands(command):
        yield ".Ar command"
        yield ".Op Ar options"


def arguments(command):
    listed = shown(command.get("arguments", []))
    if not listed:
        return
    yield ".Bl -tag -width indent"
    for argument in listed:
        if argument["kind"] == "positional":
            yield f".It Ar {argument['valueName']}"
        else:
            names = " , ".join(flag(name) for name in argument["names"])
            yield f".It {names}{value(argument)}"
        for key in ("abstract", "discussion"):
            if argument.get(key):
                yield from sentences(argument[key])
        if argument.get("allValues"):
            yield from sentences("One of: " + ", ".join(argument["allValues"]) + ".")
        if argument.get("defaultValue"):
            yield line("Default: " + argument["defaultValue"].removesuffix(".0"))
    yield ".El"


def split_exit_codes(command):
    """What the discussion says, and apart from it the exit codes."""
    paragraphs = command.get("discussion", "").split("\n\n")
    codes = [text for text in paragraphs if text.startswith("Exit codes:")]
    return "\n\n".join(text for text in paragraphs if text not in codes), codes


def exit_status(codes):
    yield ".Bl -tag -width indent"
    for item in codes[0].removeprefix("Exit codes:").strip().rstrip(".").split(";"):
        numbers, text = [], item.split()
        while text and text[0].rstrip(",").isdigit():
            numbers.append(text.pop(0))
            if text[0] == "and":
                numbers.append(text.pop(0))
        if not numbers:
            sys.exit(f"manual.py: no number in “{item}”")
        yield ".It " + " ".join(numbers)
        sentence = " ".join(text)
        yield line(sentence[:1].upper() + sentence[1:] + ".")
    yield ".El"


def subcommands(path, command):
    for child in commands(command):
        name = f"{path} {child['commandName']}"
        yield f".Ss {name}"
        yield ".Bd -ragged -compact"
        yield from synopsis(name, child)
        yield ".Ed"
        yield ".Pp"
        yield from sentences(child.get("abstract", ""))
        if child.get("discussion"):
            yield ".Pp"
            yield from sentences(child["discussion"])
        yield from arguments(child)
        yield from subcommands(name, child)


def page(command, more, version, date):
    name = command["commandName"]
    yield f'.Dd {date.strftime("%B")} {date.day}, {date.year}'
    yield f".Dt {name.upper()} 1"
    yield f".Os Operon {version}"
    yield ".Sh NAME"
    yield f".Nm {name}"
    yield ".Nd " + line(command["abstract"].rstrip("."))
    yield ".Sh SYNOPSIS"
    yield from synopsis(name, command)
    yield ".Sh DESCRIPTION"
    discussion, codes = split_exit_codes(command)
    yield from sentences(command["abstract"])
    if discussion:
        yield ".Pp"
        yield from sentences(discussion)
    yield from arguments(command)
    if commands(command):
        yield ".Sh COMMANDS"
        yield from subcommands(name, command)
    # Between FILES and EXAMPLES, says mdoc(7).
    before, examples, after = more.partition(".Sh EXAMPLES")
    yield before.rstrip()
    if codes:
        yield ".Sh EXIT STATUS"
        yield from exit_status(codes)
    yield (examples + after).rstrip()


def main():
    dump = json.load(sys.stdin)
    if dump["serializationVersion"] != SERIALIZATION:
        sys.exit(f"manual.py: a dump of version {dump['serializationVersion']} is not known")
    more = pathlib.Path(sys.argv[1]).read_text()
    date = datetime.date.fromisoformat(sys.argv[3])
    print("\n".join(page(dump["command"], more, sys.argv[2], date)))


if __name__ == "__main__":
    main()
