"""What happens: every rule and every transaction. Six rooms; imports between them point down.

``operators/``  what the site's operators see and do
``arrival/``    somebody signs in, links, pastes a Connect code  |  ``standing/``  what holds now
``upkeep/``     what is due: re-fetches, refreshes, handlers, keys
``erasure/``    everything about a person goes; retention; the dossier of what is stored where
``events/``     a webhook's event is stored once and applied once
"""
