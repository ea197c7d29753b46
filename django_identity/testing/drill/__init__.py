"""The drill: a site proves its own promises, with its own code, against a sandbox.

``world``: databases of its own and nothing live · ``doors``: the gated addresses · ``walk``: the
steps of one person · ``findings``: what is wrong, in a sentence · ``report``: what was seen
"""

from collections.abc import Collection
from itertools import cycle, product

from django.core.management import call_command
from django.utils import translation
from tqdm import tqdm

from django_identity.instruments import gate_map
from django_identity.requirements import NotARequirement
from django_identity.testing.drill import findings
from django_identity.testing.drill.doors import doors_of
from django_identity.testing.drill.person import NOWHERE, NotTried, Scene, StepFailed
from django_identity.testing.drill.report import Report
from django_identity.testing.drill.walk import Visitor
from django_identity.testing.drill.world import Refused, own_world
from django_identity.testing.sandbox import SandboxError

__all__ = ["Refused", "Report", "drill"]

# Nobody else's names, by which everything is found that is left of them.
PEOPLE = (
    ("a person", "Wilhelmina", "Quarshie"),
    ("a person without an e-mail address", "Olúwadémiládé", "Agbájé"),
    ("a person with a name in Arabic", "زهراء", "الفيروزآبادي"),
)


def drill(
    *,
    examples: Collection[str] = (),
    excluded: Collection[str] = (),
    fixtures: Collection[str] = (),
) -> Report:
    """Let three people try every gated address of this site. Raises ``Refused``.

    ``examples``: paths of addresses with parameters, or of a view whose own code asks, with what it
    asks for: ``"/wine/=age_over_18"``. ``excluded``: addresses that are left out.
    """
    report = Report(untried=dict.fromkeys(excluded, "excluded"))
    with translation.override(gate_map.language_of_requests()):
        try:
            _drill(report, examples, fixtures)
        except (Refused, NotARequirement, SandboxError):
            raise
        except Exception as error:  # noqa: BLE001  what was seen is worth a report
            report.find(f"the drill cannot go on: {findings.described(error)}")
    report.settle()
    return report


def _drill(
    report: Report,
    examples: Collection[str],
    fixtures: Collection[str],
) -> None:
    found: dict[str, gate_map.Address] = {}
    for address in gate_map.addresses():
        # Of several views at one address Django calls the first.
        if address.url not in report.untried:
            found.setdefault(address.url, address)
    doors = list(doors_of(found.values(), report, examples=examples))
    findings.search_map(found.values(), report)
    our_pages = [url for url, address in found.items() if address.include == "identity"]
    findings.watch_logs(report)
    with own_world() as sandbox:
        for name in fixtures:
            call_command("loaddata", name, verbosity=0)
        _send_people(Scene(sandbox, doors, our_pages, report))


def _send_people(scene: Scene) -> None:
    """First all people walk. A person who parts is not erased, and has to stay."""
    values = [value for door in scene.doors for value in door.countries]
    named = ["NG"]
    if values:
        named = [*values[:1], NOWHERE, *values[1:]]
    countries = cycle(named)
    turns = [*product((Visitor.walk, Visitor.part), PEOPLE)]
    for way, (who, first_name, last_name) in tqdm(turns, desc="people", disable=None):
        try:
            visitor = Visitor(
                scene,
                first_name=first_name,
                last_name=last_name,
                shows_email="without" not in who,
                country=next(countries),
            )
            visitor.take(way(visitor))
        except NotTried as impossible:
            scene.report.untried[who] = str(impossible)
        except (StepFailed, AssertionError) as failure:
            scene.report.find(f"{who} cannot go on: {failure}")
        except Exception as error:  # noqa: BLE001  the site's own code may raise anything
            scene.report.find(f"{who} cannot go on: {findings.described(error)}")
