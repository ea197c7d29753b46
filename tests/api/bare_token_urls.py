"""A host that has the API and no page of ours."""

from django.urls import path

from tests.api.token_urls import login

urlpatterns = [path("api/login", login)]
