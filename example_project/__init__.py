"""A small product with a reason for each feature of django-identity."""

from example_project.celery import app as celery_app

__all__ = ["celery_app"]
