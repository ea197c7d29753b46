"""The drill: a site proves its own promises, with its own code, against a sandbox.

``world``: databases of its own and nothing live · ``doors``: the gated addresses · ``walk``: the
steps of one person · ``findings``: what is wrong, in a sentence · ``report``: what was seen
"""

from collections.abc import Collection
from itertools import cycle, product
from typing import Any

from django.core.management import call_command
from tqdm import tqdm

from django_identity.instruments import gate_map
from django_identity.instruments.drill import findings
from django_identity.instruments.drill.doors import PARAMETERS, doors_of
from django_identity.instruments.drill.person import NotTried, Scene, StepFailed
from django_identity.instruments.drill.report import Report
from django_identity.instruments.drill.walk import Visitor
from django_identity.instruments.drill.world import Refused, own_world

__all__ = ["Refused", "Report", "drill"]

# Nobody else's names, by which everything is found that is left of them.
PEOPLE: dict[str, dict[str, Any]] = {
    "a person": {
        "first_name": "Wilhelmina",
        "last_name": "Quarshie",
        "shows_email": True,
    },
    "a person without an e-mail address": {
        "first_name": "Olúwadémiládé",
        "last_name": "Agbájé",
        "shows_email": False,
    },
    "a person with a name in Arabic": {
        "first_name": "زهراء",
        "last_name": "الفيروزآبادي",
        "shows_email": True,
    },
}


def drill(
    *,
    examples: Collection[str] = (),
    excluded: Collection[str] = (),
    fixtures: Collection[str] = (),
) -> Report:
    """Let three people try every gated address of this site. Raises ``Refused``.

    ``examples``: paths of addresses with parameters. ``excluded``: addresses that are left out.
    """
    report = Report(untried=dict.fromkeys(excluded, "excluded"))
    found: list[gate_map.Address] = []
    tried = set(excluded)
    for address in gate_map.addresses():
        # Of several views at one address Django calls the first.
        if address.url not in tried:
            tried.add(address.url)
            found.append(address)
    doors = list(doors_of(found, report, examples=examples))
    for door in doors:
        asked = ", ".join(map(str, door.requirements))
        report.untried[door.path] = f"nobody here has {asked}"
    if not doors:
        report.untried["gates"] = "no address has one that can be tried"
    for sentence in findings.beside(found):
        report.find(sentence)

    with own_world() as sandbox:
        for name in fixtures:
            call_command("loaddata", name, verbosity=0)
        is_open = {address.url for address in found if not address.reading.guards}
        pages = [url for url in is_open if not PARAMETERS.search(url)]
        _send_people(Scene(sandbox, doors, pages, report))
    return report


def _send_people(scene: Scene) -> None:
    """First all walk: who parts is not erased, and has to stay."""
    values = [value for claim in scene.claims for value in claim.values]
    countries = cycle(values or ["NG"])
    turns = list(product((Visitor.walk, Visitor.part), PEOPLE))
    for way, who in tqdm(turns, desc="people", disable=None):
        visitor = Visitor(scene, **PEOPLE[who], country=next(countries))
        try:
            visitor.take(way(visitor))
        except NotTried as impossible:
            scene.report.untried[who] = str(impossible)
        except (StepFailed, AssertionError) as failure:
            scene.report.find(f"{who} cannot go on: {failure}")
