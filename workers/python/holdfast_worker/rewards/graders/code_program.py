"""The program in a completion."""

from __future__ import annotations

FENCE = "`" * 3
LANGUAGES = ("", "python", "python3", "py")


def program_of(completion: str) -> str | None:
    """The last fenced block that is closed and of our language or of none. In time linear in the
    text, which a policy wrote.
    """
    found: str | None = None
    opened = ""
    language = ""
    body: list[str] = []
    for line in completion.splitlines():
        bare = line.strip()
        ticks = bare[: len(bare) - len(bare.lstrip("`"))]
        if not opened:
            if len(ticks) >= len(FENCE) and "`" not in bare[len(ticks) :]:
                opened, body = ticks, []
                language = bare[len(ticks) :].strip().partition(" ")[0].lower()
        elif bare == ticks and len(ticks) >= len(opened):
            if language in LANGUAGES:
                found = "\n".join(body)
            opened = ""
        else:
            body.append(line)
    return found
