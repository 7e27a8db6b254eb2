"""Results for people and spreadsheets: terminal, Markdown, CSV."""
