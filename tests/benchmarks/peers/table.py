"""The figures as one table in Markdown. A ratio above 1: this package takes less than the peer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

NAMES = {
    "plain": "Django alone",
    "ours": "**django-identity**",
    "ours_all": "django-identity, level and verified credential too",
    "ours --jobs": "django-identity with `tasks` and `api`",
    "allauth": "django-allauth",
    "allauth_tokens": "django-allauth, storing tokens",
    "social": "social-auth-app-django",
    "oidc": "mozilla-django-oidc",
    "authlib": "Authlib, user and session by the site",
    "dj_stripe": "dj-stripe",
    "sd_jwt": "sd-jwt",
    "pyjwt": "PyJWT, signature only",
    "joserfc": "joserfc, signature only",
}
IN_WEBHOOK = {"ours_all": "**django-identity**, event applied"}
IN_VERIFICATION = {"authlib": "Authlib, signature only"}
HEAD = "| work | package | CPU (ms) | queries | memory (MB) | ratio |\n|---|---|--:|--:|--:|--:|"


def as_markdown(found: Mapping[str, Any]) -> str:
    return "\n".join([_machine(found["machine"]), "", HEAD, *_rows(found)])


def _machine(machine: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    first, last = machine["load"]
    return (
        f"{machine['date']}, Python {machine['python']}, {machine['processors']} processors, "
        f"{machine['database']}, load {first} to {last}; {versions}"
    )


def _rows(found: Mapping[str, Any]) -> Iterator[str]:
    yield from _work("sign-in of a returning person", found["sign_in"], "ours")
    yield from _work("webhook, one event", found["webhook"], "ours_all", IN_WEBHOOK)
    for disclosures, measured in found["verification"].items():
        work = f"verification, {disclosures} disclosures"
        yield from _work(work, measured, "ours", IN_VERIFICATION)
    for moment, work in (("set_up", "`django.setup()`"), ("with_urls", "with all URLs loaded")):
        measured = {name: each[moment] for name, each in found["start_up"].items()}
        yield from _work(f"{work}, beyond Django alone", measured, "ours")


def _work(
    work: str,
    measured: Mapping[str, Mapping[str, float]],
    ours: str,
    names: Mapping[str, str] = NAMES,
) -> Iterator[str]:
    base = measured[ours]["cpu_ms"]
    for name, costs in measured.items():
        is_other = name not in {"plain", ours}
        ratio = f"{costs['cpu_ms'] / base:.2f}" if is_other and base > 0 else ""
        queries = f"{costs['queries']:.0f}" if "queries" in costs else ""
        memory = f"{costs['megabytes']:.1f}" if "megabytes" in costs else ""
        digits = 3 if costs["cpu_ms"] < 1 else 1
        cpu = f"{costs['cpu_ms']:.{digits}f}"
        named = names.get(name, NAMES[name])
        yield f"| {work} | {named} | {cpu} | {queries} | {memory} | {ratio} |"
