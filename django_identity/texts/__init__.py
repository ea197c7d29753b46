"""Everything that people are told, and the names of codes in their language.

- ``labels``: names of claims, levels, columns, tables and countries
- ``advice``: what a page says about a closed gate and about an error
- ``operators``: what the admin says beside these
"""
