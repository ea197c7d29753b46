"""One change of the package, as data."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import django_identity

#: The package that is tested: of the wheel, too.
PACKAGE = Path(django_identity.__file__).parent


class Unusable(Exception):
    """The text of a sabotage is not there exactly once. The message says where."""


@dataclass(frozen=True, slots=True)
class Sabotage:
    """Puts ``after`` in the place of ``before``. ``file``: below the package.

    ``breaks``: the rule of the package that does not hold then, in one sentence.
    """

    name: str
    file: str
    before: str
    after: str
    breaks: str

    def commit(self, package: Path) -> None:
        """Change a copy of the package. Raises ``Unusable``."""
        (package / self.file).write_text(self.changed(package))

    def changed(self, package: Path = PACKAGE) -> str:
        """The text of the file with the change. Raises ``Unusable``."""
        path = package / self.file
        if not path.exists():
            raise Unusable(f"{self.name}: the package has no file {self.file}")
        text = path.read_text()
        times = text.count(self.before)
        if times != 1:
            raise Unusable(
                f"{self.name}: {self.before!r} is {times} times in {self.file}",
            )
        return text.replace(self.before, self.after)


@dataclass(frozen=True, slots=True)
class Room:
    """The sabotages of a room. ``tests``: its fastest files that should notice them."""

    name: str
    tests: Sequence[str]
    sabotages: tuple[Sabotage, ...]


def room(name: str, tests: Sequence[str], changes: str) -> Room:
    """``changes``: a paragraph for each sabotage.

    It has the name and the rule, the file, and the lines that go and come, as in a diff.
    """
    sabotages = []
    for paragraph in changes.strip().split("\n\n"):
        title, file, *lines = paragraph.splitlines()
        name_of_it, _, breaks = title.partition(": ")
        before = "\n".join(line[1:] for line in lines if line.startswith("-"))
        after = "\n".join(line[1:] for line in lines if line.startswith("+"))
        sabotages.append(Sabotage(name_of_it, file, before, after, breaks))
    return Room(name, tests, tuple(sabotages))
