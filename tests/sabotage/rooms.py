"""All rooms, and the sabotages of each."""

from tests.sabotage import arriving, facing, minding, proving
from tests.sabotage.sabotage import Room

ROOMS = [
    each
    for module in (proving, arriving, minding, facing)
    for each in vars(module).values()
    if isinstance(each, Room)
]
