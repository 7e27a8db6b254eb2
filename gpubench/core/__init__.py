"""The nouns of results: claims, findings, reports. No English about results."""
