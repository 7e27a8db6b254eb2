"""A report, walked by one renderer a medium. All English about results is in words.py."""
