"""The JSON API. Only this package imports Django REST framework."""
