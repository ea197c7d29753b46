"""What mends an error of the service, for the developer of a site."""

#: The code of the error, in capitals -> what mends it.
REMEDIES = {
    "UNAUTHORIZED": (
        "Send a valid access token as Bearer, or client id and secret as Basic. A token ends after "
        "an hour, with the consent, and when the person asks for deletion: refresh it once, or ask "
        "the person to sign in."
    ),
    "INSUFFICIENT_SCOPE": (
        "Ask for the scope in SCOPES or LATER_SCOPES, and let the person sign in again."
    ),
    "USER_MISMATCH": "Read the person to whom the access token belongs, or me.",
    "ENVIRONMENT_MISMATCH": (
        "Use the credentials of the person's environment: test for sandbox users, live for others."
    ),
    "INVALID_CONNECT_CODE": (
        "The code is wrong, used, or older than ten minutes: let the person make a new one."
    ),
    "CONNECT_CODE_REQUIRED": "Ask the person for a code, and send it as connect_code.",
    "INVALID_SCOPE": "Ask for scopes that the service gives this application.",
    "KYC_LEVEL_REQUIRED": "Send the person to kyc_url. After the verification a new code works.",
    "POA_REQUIRED": "Send the person to kyc_url. With proof of address a new code works.",
    "TRUSTED_TIER_REQUIRED": "Register a public key for documents on the page Applications.",
    "RATE_LIMITED": "Wait for as long as Retry-After says, then ask again.",
    "INVALID_REQUEST": "A member is missing or has a wrong form; the message names it.",
    "METHOD_NOT_ALLOWED": "Use the method that the header Allow names.",
    "NOT_FOUND": "Compare the address with BASE_URL, and the id with the application's own.",
    "INTERNAL_ERROR": "The sandbox has failed; its terminal says where. Please report it.",
    "INVALID_CLIENT": (
        "CLIENT_ID or CLIENT_SECRET is another one. Rotate the secret on the page Applications."
    ),
    "INVALID_GRANT": (
        "The code or refresh token is used, expired or revoked, or verifier and address are not "
        "those of the authorization: let the person sign in again."
    ),
    "UNSUPPORTED_GRANT_TYPE": "Send authorization_code or refresh_token as grant_type.",
    "ACCESS_DENIED": "The person did not allow it: offer the sign-in again.",
}
