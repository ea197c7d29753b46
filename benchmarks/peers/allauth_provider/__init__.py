"""The provider that a site with django-allauth writes for the service."""
