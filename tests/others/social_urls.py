"""The addresses of the site with social-auth."""

from django.urls import include, path

urlpatterns = [path("", include("social_django.urls", namespace="social"))]
