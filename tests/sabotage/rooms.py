"""All rooms, and the sabotages of each."""

from tests.sabotage import arriving, facing, minding, proving

ROOMS = (
    proving.PROOF,
    arriving.SIGN_IN,
    arriving.CODES,
    arriving.SESSIONS,
    facing.GATES,
    minding.EVENTS,
    proving.CLAIMS,
    minding.TOKENS,
    minding.REFETCH,
    minding.LEAVING,
    arriving.POLICY,
    facing.FACES,
    proving.SECRETS,
    facing.CHECKS,
    facing.MAP,
    facing.SIGNS,
    facing.DRILL,
    facing.SANDBOX,
)
