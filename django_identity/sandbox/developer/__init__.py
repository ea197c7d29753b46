"""What a developer does (spec: Developer endpoints): applications, their secrets, test users."""
