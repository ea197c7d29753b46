"""One change of the package, as data."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "django_identity"


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

    def commit(self, root: Path) -> None:
        """Change the package in the folder ``root``. Raises ``Unusable``."""
        path = root / PACKAGE / self.file
        path.write_text(self.changed(root))

    def changed(self, root: Path) -> str:
        """The text of the file with the change. Raises ``Unusable``."""
        path = root / PACKAGE / self.file
        if not path.exists():
            raise Unusable(f"{self.name}: there is no file {PACKAGE}/{self.file}")
        text = path.read_text()
        times = text.count(self.before)
        if times != 1:
            raise Unusable(
                f"{self.name}: {self.before!r} is {times} times in {PACKAGE}/{self.file}"
            )
        return text.replace(self.before, self.after)


@dataclass(frozen=True, slots=True)
class Room:
    """The sabotages of a room. ``tests``: its fastest files that should notice them."""

    name: str
    tests: tuple[str, ...]
    sabotages: tuple[Sabotage, ...]
