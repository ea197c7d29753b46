"""A Django site as a relying party of the identity verification service.

The rooms, from the ground up; imports point down only:

- ``exceptions`` every error a site can catch; ``conf`` the setting; ``vault`` encryption at rest
- ``service/`` the wire: HTTP and its bytes, both ways
- ``credentials/`` the proof: pure functions that verify an SD-JWT
- ``models/`` the records
- ``lifecycle/`` what happens: the only place with rules and transactions; six rooms
- the faces: ``views/``, ``gates``, ``api/``, ``tasks``, ``admin/``, commands: one verb in, one
  response out

``sandbox/`` beside them is the whole service, played locally: a Django project of its own.
"""
