"""Failures to survive: real servers, real processes; a test's number is its failure's in the list it came from."""
