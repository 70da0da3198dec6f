"""Prints commands of docs/DEPLOY.md: those of one step of “A cluster on Debian”, or one block of those
of another section.

    deploy_steps.py STEP
    deploy_steps.py SECTION BLOCK        the first block is 1
"""

import pathlib
import re
import sys


def blocks(heading):
    """The code blocks under a heading, of which this is the beginning."""
    page = pathlib.Path(__file__).parents[2] / "docs" / "DEPLOY.md"
    text = page.read_text(encoding="utf-8")
    part = re.search(rf"^{heading}.*?(?=^##)", text, re.MULTILINE | re.DOTALL)
    if part is None:
        sys.exit(f"{page} has no heading “{heading}”")
    return re.findall(r"^```\w*\n(.*?)^```", part.group(0), re.MULTILINE | re.DOTALL)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print("\n".join(blocks(rf"### {sys.argv[1]}\. ")), end="")
    else:
        print(blocks(rf"## {sys.argv[1]}\n")[int(sys.argv[2]) - 1], end="")
