"""The drill: a site proves its own promises, with its own code, against a sandbox.

``world``: databases of its own and nothing live · ``doors``: the gated addresses · ``walk``: the
steps of one person · ``findings``: what is wrong, in a sentence · ``report``: what was seen
"""

from collections.abc import Collection
from typing import Any

from django.core.management import call_command
from tqdm import tqdm

from django_identity.gates import site_map
from django_identity.requirements import RequiredClaim
from django_identity.testing.drill import findings
from django_identity.testing.drill.doors import PARAMETERS, doors_of
from django_identity.testing.drill.report import Report
from django_identity.testing.drill.walk import Scene, StepFailed, Visitor
from django_identity.testing.drill.world import Refused, own_world

__all__ = ["Refused", "Report", "drill"]

# Nobody else's names, by which everything is found that is left of them.
WITHOUT_ADDRESS = 1
WHO = ("a person", "a person without an e-mail address", "a person with a name in Arabic")
NAMES = (("Wilhelmina", "Quarshie"), ("Olúwadémiládé", "Agbájé"), ("زهراء", "الفيروزآبادي"))


def drill(
    *,
    examples: Collection[str] = (),
    excluded: Collection[str] = (),
    fixtures: Collection[str] = (),
) -> Report:
    """Let three people try every gated address of this site. Raises ``Refused``.

    ``examples``: paths of addresses with parameters. ``excluded``: addresses that are left out.
    """
    by_url: dict[str, site_map.Address] = {}
    for address in site_map.with_answers(list(site_map.addresses())):
        # Of several views at one address Django calls the first.
        by_url.setdefault(address.url, address)
    found = [address for url, address in by_url.items() if url not in excluded]
    report = Report(untried=dict.fromkeys(excluded, "excluded"))
    doors = list(doors_of(found, report, examples=examples))
    for door in doors:
        report.untried[door.path] = f"nobody here has {', '.join(map(str, door.asked))}"
    if not doors:
        report.untried["gates"] = "no address has one that can be tried"
    for sentence in findings.beside(found):
        report.find(sentence)

    with own_world() as sandbox:
        for name in fixtures:
            call_command("loaddata", name, verbosity=0)
        pages = [each.url for each in found if _is_open_page(each)]
        scene = Scene(sandbox, doors, pages, report)
        claims: Any = scene.asked(RequiredClaim)
        countries = [value for claim in claims for value in claim.values] or ["NG"]
        for number, (first, last) in enumerate(tqdm(NAMES, desc="people", disable=None)):
            parting = Visitor(scene, first_name=first[::-1], last_name=last[::-1], verified=True)
            person = Visitor(
                scene,
                first_name=first,
                last_name=last,
                country=countries[number % len(countries)],
                shows_email=number != WITHOUT_ADDRESS,
                verified=False,
            )
            try:
                parting.part()
                person.walk()
            except (StepFailed, AssertionError) as failed:
                # Where addresses are the names of accounts, nobody signs up without one.
                if number == WITHOUT_ADDRESS and str(failed).endswith("user_fields_refused"):
                    report.untried[WHO[number]] = f"{failed}"
                else:
                    report.find(f"{WHO[number]} cannot go on: {failed}")
    return report


def _is_open_page(address: site_map.Address) -> bool:
    is_other = address.reading.guards or address.error or address.include
    return not is_other and not PARAMETERS.search(address.url)
