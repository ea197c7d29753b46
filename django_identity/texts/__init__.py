"""Everything that people are told, and the names of codes in their language.

- ``labels``: names of claims, levels, columns, tables and countries
- ``advice``: sentences about a closed gate and about an error
- ``operators``: further sentences of the admin
"""
