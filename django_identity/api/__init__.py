"""The JSON faces. The only room that imports Django REST framework."""
