"""Reports for CI services: JUnit, SARIF, workflow commands and the comment on a pull request."""
