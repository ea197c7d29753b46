"""What pages call claims and countries."""

#: Each type of the specification, as the pages say it.
CLAIM_TITLES = {
    "kyc_verified": "Identity verified",
    "age_over_18": "18 or older",
    "country_resident": "Country of residence",
    "unique_human": "Unique person",
}
#: In words; of other countries the pages show the code.
COUNTRIES = {"NG": "Nigeria", "PT": "Portugal", "EG": "Egypt"}
