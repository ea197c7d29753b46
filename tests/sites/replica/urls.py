"""The replica catches up while the site does its upkeep."""

from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from tests.sites.plain import urls, views
from tests.sites.replica.router import copy


@csrf_exempt
def upkeep(request: HttpRequest) -> HttpResponse:
    answered = views.upkeep(request)
    copy()
    return answered


urlpatterns = [path("upkeep/", upkeep), *urls.urlpatterns]
