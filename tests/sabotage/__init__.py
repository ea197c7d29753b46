"""Small changes that each break one rule of the package, to see that a test notices each."""
