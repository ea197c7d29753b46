"""Does what ``docs/tutorial.md`` says, block by block, in an empty folder with the built wheel.

``python -m tests.tutorial`` builds the wheel and prints each block and its seconds. A comment above
a block says what it is: a file to ``write`` or ``append``, or a command of the ``second terminal``,
which runs on and prints the text after the colon when it is ready. A block without a comment is run
and must succeed. The Django is the newest for this Python.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
TUTORIAL = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(
    r"(?:<!-- (?P<what>[^:\n]+): (?P<value>[^\n]*) -->\n)?```\w+\n(?P<text>.*?)```",
    re.DOTALL,
)
PUBLISHED = '"../django-identity[sandbox]"'
SITE = "http://127.0.0.1:8000"
PATIENCE = 300.0
STRANGE = ("VIRTUAL_ENV", "PYTHONPATH", "DJANGO_SETTINGS_MODULE", "DATABASE_URL")
DEPRECATED_CALLS_FAIL = "error::DeprecationWarning,error::PendingDeprecationWarning"


def build_wheel(folder: Path) -> Path:
    """The wheel of this tree, built from a clean copy."""
    source = folder / "source"
    shutil.copytree(
        ROOT / "django_identity",
        source / "django_identity",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps"]
    subprocess.run([*pip, "-w", folder, source], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


class Terminal:
    """A folder in which commands run, as in a newcomer's shell with the environment activated."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        folder.mkdir()
        self.folder, self.stack = folder, stack
        self.env = {**os.environ, "PYTHONUNBUFFERED": "1", "PIP_QUIET": "1"}
        for strange in STRANGE:
            self.env.pop(strange, None)

    def run(self, _: str, text: str) -> None:
        command = "[ ! -e .venv ] || . .venv/bin/activate\n" + text
        subprocess.run(
            ["bash", "-ec", command],
            cwd=self.folder,
            env=self.env,
            check=True,
        )
        # The first block installs, and pip has deprecated calls of its own.
        self.env["PYTHONWARNINGS"] = DEPRECATED_CALLS_FAIL

    def start(self, ready: str, text: str) -> None:
        """Start a command that runs on, and wait until it prints that it is ready."""
        process = subprocess.Popen(
            ["bash", "-ec", re.sub(r"\n(\S.*)\n\Z", r"\nexec \1\n", text)],
            cwd=self.folder,
            env=self.env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.terminate)
        is_ready = threading.Event()
        reading = (process, ready, is_ready)
        threading.Thread(target=_read, args=reading, daemon=True).start()
        if not is_ready.wait(PATIENCE):
            raise TimeoutError(text)

    def write(self, name: str, text: str, mode: str = "w") -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        with (self.folder / name).open(mode) as file:
            file.write(text)

    def append(self, name: str, text: str) -> None:
        self.write(name, "\n" + text, "a")

    def append_unless_mailers(self, name: str, text: str) -> None:
        """What a project of Django before 6.1 needs."""
        if "MAILERS" not in (self.folder / name).read_text("utf-8"):
            self.append(name, text)


def _read(
    process: subprocess.Popen[str],
    ready: str,
    is_ready: threading.Event,
) -> None:
    """Read everything, so that the process never waits for a full pipe."""
    assert process.stdout
    for line in process.stdout:
        print("   |", line, end="")
        if ready in line:
            is_ready.set()


def press_the_button(page: Page) -> None:
    """Step 5 in a browser: a closed gate, the button, a person, consent, the bar."""
    page.goto(f"{SITE}/bar/")
    page.get_by_role("button", name="Continue with").first.click()
    page.get_by_role("button", name="Continue as Ada").click()
    page.get_by_role("button", name="Allow", exact=True).click()
    page.wait_for_url(f"{SITE}/bar/")
    assert "Welcome to the bar." in page.content()


def main() -> None:
    with ExitStack() as stack:
        room = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        wheel, page = build_wheel(room), TUTORIAL.read_text("utf-8")
        terminal = Terminal(room / "shop", stack)
        actions = {
            "write": terminal.write,
            "append": terminal.append,
            "append unless MAILERS": terminal.append_unless_mailers,
            "second terminal": terminal.start,
        }
        # The built wheel stands in for the checkout.
        assert page.count(PUBLISHED) == 1
        page = page.replace(PUBLISHED, f'"django-identity[sandbox] @ {wheel.as_uri()}"')
        for what, value, text in BLOCK.findall(page):
            begin = time.monotonic()
            actions.get(what, terminal.run)(value, text)
            print(f"{time.monotonic() - begin:6.1f} s  {text.splitlines()[0]}")
        with sync_playwright() as playwright:
            switches = ["no-sandbox", "disable-gpu", "disable-background-networking"]
            browser = playwright.chromium.launch(
                executable_path="/usr/bin/chromium",
                args=[f"--{switch}" for switch in switches],
            )
            press_the_button(browser.new_page())
            browser.close()
    print("The tutorial works.")


if __name__ == "__main__":
    main()
