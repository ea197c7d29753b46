"""Filters for the admin's pages alone: they may change."""

from django import template

from django_identity.exceptions.table import hint_of
from django_identity.texts import operators as wording
from django_identity.texts.advice import distance
from django_identity.texts.labels import in_words

register = template.Library()

register.filter(distance)
register.filter("as_json", wording.as_json)
register.filter("person", wording.person_name)
register.filter(in_words)
register.filter("error_in_words", hint_of)
register.filter(wording.environment_badge)
register.filter(wording.validity)
register.filter(wording.due)
register.filter(wording.short_subject)
