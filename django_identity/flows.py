"""The functions that a site's own code may call.

Errors leave as ``boundary`` says, so each function also raises ``UnexpectedError`` (the site's own
code failed) and ``StorageUnavailable`` (the database did not answer), each without a variable of
ours. The faces of the package are doors themselves, and call ``lifecycle``. A face that answers an
error itself calls a function of this file.
"""

from django_identity.boundary import boundary
from django_identity.lifecycle.arriving import connect, sign_in
from django_identity.lifecycle.leaving import erasure
from django_identity.lifecycle.said import events, tokens
from django_identity.lifecycle.standing import standing

Callback = sign_in.Callback

begin_sign_in = boundary(sign_in.begin)
complete_sign_in = boundary(sign_in.complete)
redeem_code = boundary(connect.redeem)
standing_of = boundary(standing.standing_of)
access_token_for = boundary(tokens.access_token_for)
erase_account = boundary(erasure.erase_account)
receive_event = boundary(events.receive)
