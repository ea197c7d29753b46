"""The databases of the shop."""


class ReplicaRouter:
    """Reads go to a replica."""

    def db_for_read(self, *_: object, **__: object) -> str:
        return "replica"

    def db_for_write(self, *_: object, **__: object) -> str:
        return "default"

    def allow_relation(self, *_: object, **__: object) -> bool:
        return True
