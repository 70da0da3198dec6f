"""Prints the commands of one step of “A cluster on Debian” in docs/DEPLOY.md.

    deploy_steps.py STEP
"""

import pathlib
import re
import sys


def blocks(step):
    """The code blocks of a step."""
    page = pathlib.Path(__file__).parents[2] / "docs" / "DEPLOY.md"
    text = page.read_text(encoding="utf-8")
    part = re.search(rf"^### {step}\. .*?(?=^##)", text, re.MULTILINE | re.DOTALL)
    if part is None:
        sys.exit(f"{page} has no step {step}")
    return re.findall(r"^```\w*\n(.*?)^```", part.group(0), re.MULTILINE | re.DOTALL)


if __name__ == "__main__":
    print("\n".join(blocks(sys.argv[1])), end="")
