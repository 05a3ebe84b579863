"""Commands over many months: run, refresh, retry, estimate, doctor and export."""
