"""Refuses new commits whose subject is not `area: imperative sentence`, of at most 72 characters and without a period.

New: on this branch and not on main; on main the last few. Commits from before this file's last change are left alone,
and so is a copy without history. That a sentence is imperative no program knows: it refuses what surely is not.
"""

import re
import subprocess
import sys
from pathlib import Path

LONGEST = 72
#: So many on main: a slip there, which nobody may rewrite, is not held against others for ever.
LAST = 20
FORM = re.compile(r"[a-z][\w.+-]*(, [a-z][\w.+-]*)*: (?P<first>[^\s,]+).*[^.]")
NO_VERB = re.compile(
    "an?|the|this|that|these|those|no|not|one|all|each|every|both|any|some|its?|they|their|what|which|who|where|when|"
    "how|why|if|in|on|of|for|from|with|without|and|or|but|is|are|was|were|has|had|does|now|more|less|only"
)
#: Verbs that end as participles do.
VERB = re.compile(r"need|embed|feed|seed|shed|speed|exceed|proceed|bring|string|ring|sing|ping|swing")
PARTICIPLE = re.compile(r".+(ed|ing)")


def git(*arguments: str) -> str | None:
    done = subprocess.run(["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def fault(subject: str) -> str:
    """Return the fault of a subject, or ""."""
    if len(subject) > LONGEST:
        return f"has {len(subject)} characters, and {LONGEST} are the most"
    form = FORM.fullmatch(subject)
    if form is None:
        return "is not of the form `area: imperative sentence`, without a period"
    first = form["first"].lower()
    if NO_VERB.fullmatch(first) or (PARTICIPLE.fullmatch(first) and not VERB.fullmatch(first)):
        return f"does not begin with an imperative: {form['first']!r}"
    return ""


def new_commits() -> list[str]:
    """Lines of a commit's short name and its subject."""
    rule = git("log", "-1", "--format=%H", "--", Path(__file__).name)
    if not rule:
        return []
    since = [f"^{rule}"]
    base = git("merge-base", "HEAD", "main")
    if base and base != git("rev-parse", "HEAD"):
        since.append(f"^{base}")
    return (git("log", "--no-merges", f"-{LAST}", "--format=%h %s", "HEAD", *since) or "").splitlines()


def main() -> int:
    found = 0
    for commit in new_commits():
        name, _, subject = commit.partition(" ")
        if said := fault(subject):
            print(f"{name}: {subject!r} {said}")
            found += 1
    if found:
        print("Reword what is not on main yet: git commit --amend, or git rebase -i")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
