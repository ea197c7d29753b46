"""The control API under /sandbox/: JSON, for tests. Not part of the service.

``door`` reads requests and calls the views; ``people`` and ``process`` have the views.
"""

from django_identity.sandbox.control import people, process
from django_identity.sandbox.control.door import urlpatterns

__all__ = ["people", "process", "urlpatterns"]
