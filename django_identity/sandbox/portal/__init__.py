"""The developer portal: applications, their secrets and webhooks, and what was delivered."""
