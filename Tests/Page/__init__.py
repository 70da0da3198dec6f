"""End-to-end tests of the page of the coordinator, in a real browser: see scripts/check-page."""
