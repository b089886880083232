"""Results as sentences, tables, figures and one HTML page."""
