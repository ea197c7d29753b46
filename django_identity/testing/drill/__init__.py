"""The drill: a site proves its own promises, with its own code, against a sandbox.

``world``: databases of its own and nothing live · ``doors``: the gated addresses · ``walk``: the
steps of one person · ``findings``: what is wrong, in a sentence · ``report``: what was seen
"""

from collections.abc import Collection

from django.core.management import call_command
from tqdm import tqdm

from django_identity.gates import site_map
from django_identity.testing.drill import findings
from django_identity.testing.drill.doors import HAS_PARAMETERS, doors_of
from django_identity.testing.drill.report import Report
from django_identity.testing.drill.walk import SignInFailed, Visitor
from django_identity.testing.drill.world import Refused, own_world

__all__ = ["Refused", "Report", "drill"]

# Nobody else's names, by which everything is found that is left of them.
NAMES = (("Wilhelmina", "Quarshie"), ("Olúwadémiládé", "Agbájé"), ("زهراء", "الفيروزآبادي"))


def drill(
    *, examples: Collection[str], excluded: Collection[str], fixtures: Collection[str]
) -> Report:
    """Let three people try every gated address of this site. Raises ``Refused``.

    ``examples``: paths of addresses with parameters. ``excluded``: addresses that are left out.
    """
    found = site_map.with_answers(list(site_map.addresses()))
    found = [address for address in found if address.url not in excluded]
    report = Report(untried=dict.fromkeys(excluded, "excluded"))
    open_pages = [each.url for each in found if _is_open_page(each)]
    doors = list(doors_of(found, report, examples=examples))
    for door in doors:
        report.untried[door.path] = f"nobody here has {', '.join(map(str, door.asked))}"
    for sentence in findings.beside(found):
        report.find(sentence)

    values = [
        value for door in doors for each in door.asked for value in getattr(each, "values", ())
    ]
    with own_world() as sandbox:
        if fixtures:
            call_command("loaddata", *fixtures, verbosity=0)
        for number, (first, last) in enumerate(tqdm(NAMES, desc="people", disable=None)):
            country = values[number % len(values)] if values else "NG"
            where = (sandbox, doors, open_pages, report)
            parting = Visitor(*where, first_name=first[::-1], last_name=last[::-1], verified=True)
            person = Visitor(
                *where,
                first_name=first,
                last_name=last,
                country=country,
                shows_email=number != 1,
                verified=False,
            )
            try:
                parting.part()
                person.walk()
            except SignInFailed as failed:
                report.find(f"a sign-in fails: {failed}")
    return report


def _is_open_page(address: site_map.Address) -> bool:
    is_other = address.reading.guards or address.error or address.include
    return not is_other and not HAS_PARAMETERS.search(address.url)
